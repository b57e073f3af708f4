package main

import (
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"
)

// corpus is a text as numbers of words.
type corpus struct {
	words []string // in alphabetical order
	text  []int
}

// window is how far apart the words of a pair may stand.
const window = 3

// read splits a text into words.
func read(text string) *corpus {
	all := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) })
	c := &corpus{words: slices.Compact(slices.Sorted(slices.Values(all)))}
	for _, w := range all {
		c.text = append(c.text, c.find(w))
	}
	return c
}

// find is the number of a word, or -1.
func (c *corpus) find(word string) int {
	i, ok := slices.BinarySearch(c.words, word)
	if !ok {
		return -1
	}
	return i
}

// draw fills a batch: words, and for each of them a neighbour and words that are drawn at random. The numbers are spread over the
// rows of the tables.
func (c *corpus) draw(rng *rand.Rand, rows int, words, context []int) {
	each := len(context) / len(words)
	spread := rows / len(c.words)
	for k := range words {
		i := rng.IntN(len(c.text))
		j := i
		for j == i || j < 0 || j >= len(c.text) {
			j = i + rng.IntN(2*window+1) - window
		}
		words[k], context[k*each] = c.text[i]*spread, c.text[j]*spread
		for n := 1; n < each; n++ {
			context[k*each+n] = c.text[rng.IntN(len(c.text))] * spread
		}
	}
}
