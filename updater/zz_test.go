package updater
import ("testing";"time";"fmt";G "gorgonia.org/gorgonia";"gorgonia.org/tensor")
func TestZZ(t *testing.T){
 g := G.NewGraph()
 w := G.NewVector(g, tensor.Float32, G.WithShape(10_000_000), G.WithName("w"), G.WithInit(G.Zeroes()))
 u := must(New(must(G.Sum(must(G.Square(w)))), G.Nodes{w}, config(t, `{"optimizer":"adam"}`)))
 vm := must(u.NewMachine()); vm.RunAll()
 for range 3 { s := time.Now(); x := must(u.Snapshot()); d := time.Since(s); s = time.Now(); c := make([]float32, 30_000_000); copy(c[:10_000_000], w.Value().Data().([]float32)); copy(c[10_000_000:20_000_000], w.Value().Data().([]float32)); copy(c[20_000_000:], w.Value().Data().([]float32)); e := time.Since(s); s = time.Now(); x.WriteFile("/tmp/zz8.st"); f := time.Since(s); s=time.Now(); u.LoadFile("/tmp/zz8.st"); fmt.Println("snapshot", d, "plain copy", e, "write", f, "load", time.Since(s)) }
}
