package summary_test

import (
	"fmt"
	"math"
	"os"

	"optimop/updater/summary"
)

func ExampleNewCSV() {
	w := summary.NewCSV(os.Stdout)
	for step, loss := range []float64{1.5, 0.25, 1e-9} {
		values := []summary.Value{{Tag: "loss", Value: loss}, {Tag: "learning_rate", Value: 0.1}}
		if err := w.Write(summary.Record{Step: step + 1, Values: values}); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(w.Write(summary.Record{Step: 4, Values: []summary.Value{{Tag: "loss", Value: 0}}}))
	// Output:
	// step,loss,learning_rate
	// 1,1.5,0.1
	// 2,0.25,0.1
	// 3,1e-09,0.1
	// summary: csv: step 4: tag "learning_rate" of the header is missing
}

func ExampleNewJSONLines() {
	w := summary.NewJSONLines(os.Stdout)
	for step, loss := range []float64{1.5, math.Inf(1)} {
		values := []summary.Value{{Tag: "loss", Value: loss}, {Tag: "global_norm", Value: 0.5}}
		if err := w.Write(summary.Record{Step: step + 1, Values: values}); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// {"step":1,"loss":1.5,"global_norm":0.5}
	// {"step":2,"loss":"Infinity","global_norm":0.5}
}
