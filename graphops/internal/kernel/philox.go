package kernel

import "math"

// Random is a draw of random numbers, of which each can be computed by itself from its place: Philox4x32-10 of Salmon et al.,
// "Parallel random numbers: as easy as 1, 2, 3" (2011). So the numbers depend neither on the order in which they are computed
// nor on the number of workers.
type Random struct {
	key  [2]uint32
	draw [2]uint32
}

// NewRandom is draw number draw of a stream of a seed. The key is derived from seed and stream by one round trip through the
// generator; the number of the draw is half of the counter. Any numbers will do as seed and draw: whole ones, mostly.
func NewRandom(seed float64, stream uint64, draw float64) Random {
	s0, s1 := words(seed)
	k0, k1, _, _ := philox(s0, s1, uint32(stream), uint32(stream>>32), 0, 0)
	d0, d1 := words(draw)
	return Random{[2]uint32{k0, k1}, [2]uint32{d0, d1}}
}

// words are the bits of a number, where -0 is 0, and NaN is one number whatever machine made it.
func words(x float64) (lo, hi uint32) {
	if x != x {
		x = math.NaN()
	}
	b := math.Float64bits(x + 0)
	return uint32(b), uint32(b >> 32)
}

// Stream is the number of a stream that has a name: the 64-bit FNV-1a hash.
func Stream(name string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return h
}

// Words are the 128 random bits at a place.
func (r *Random) Words(place int) (a, b, c, d uint32) {
	return philox(uint32(place), uint32(uint64(place)>>32), r.draw[0], r.draw[1], r.key[0], r.key[1])
}

// philox enciphers the counter c with the key k, in ten rounds.
func philox(c0, c1, c2, c3, k0, k1 uint32) (a, b, c, d uint32) {
	for range 10 {
		x, y := uint64(c0)*0xD2511F53, uint64(c2)*0xCD9E8D57
		c0, c1, c2, c3 = uint32(y>>32)^c1^k0, uint32(y), uint32(x>>32)^c3^k1, uint32(x)
		k0 += 0x9E3779B9
		k1 += 0xBB67AE85
	}
	return c0, c1, c2, c3
}

// Uniform makes a number between 0 and 1, exclusive, of 52 of 64 random bits. It is never rounded.
func Uniform(hi, lo uint32) float64 {
	return (float64((uint64(hi)<<32|uint64(lo))>>12) + 0.5) / (1 << 52)
}
