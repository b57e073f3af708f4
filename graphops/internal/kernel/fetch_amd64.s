#include "textflag.h"

// func fetch(p unsafe.Pointer, bytes int)
TEXT ·fetch(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ bytes+8(FP), BX
	ADDQ AX, BX

next:
	PREFETCHT0 (AX)
	ADDQ $64, AX
	CMPQ AX, BX
	JLT  next
	RET
