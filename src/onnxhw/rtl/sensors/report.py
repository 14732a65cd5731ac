"""`AnswerReport`: an answer as a line of text."""

from typing import Any

from amaranth import Array, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

CLASS, SCORE = b"class ", b" score "
NUMBERS = 0x80
"""In the text: from here on no character but what a number gives; 0x80 the class, 0x81 the score."""
TEXT = (*CLASS, NUMBERS, *SCORE, NUMBERS + 1, *b"\r\n")


class AnswerReport(wiring.Component):
    """``class N score S`` in decimal, and an end of line, for each answer.

    Members
    -------
    number, score : the answer: unsigned and signed, 8 bits.
    send : In(1), one cycle, while `idle`.
    idle : Out(1).
    o : the characters.
    """

    def __init__(self) -> None:
        super().__init__(
            {"number": In(8), "score": In(8), "send": In(1), "idle": Out(1), "o": Out(stream.Signature(8))}
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        text = Array(Const(character, 8) for character in TEXT)
        at, character = Signal(range(len(TEXT) + 1)), Signal(8)
        number, score, left = Signal(8), Signal(8), Signal(8)
        digit, weight, shown = Signal(4), Signal(8), Signal()
        m.d.comb += character.eq(text[at])
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.idle.eq(1)
                m.d.sync += [at.eq(0), number.eq(self.number), score.eq(self.score)]
                with m.If(self.send):
                    m.next = "NEXT"
            with m.State("NEXT"):
                m.d.sync += [weight.eq(100), digit.eq(0), shown.eq(0)]
                with m.If(at == len(TEXT)):
                    m.next = "IDLE"
                with m.Elif(~character[7]):
                    self._give(m, character, at, "NEXT")
                with m.Elif(character[0] & score[7]):
                    m.d.sync += left.eq(-score)
                    self._give(m, ord("-"), None, "DIGIT")
                with m.Else():
                    m.d.sync += left.eq(Mux(character[0], score, number))
                    m.next = "DIGIT"
            with m.State("DIGIT"):  # a digit is how often its weight can be taken away
                with m.If(left >= weight):
                    m.d.sync += [left.eq(left - weight), digit.eq(digit + 1), shown.eq(1)]
                with m.Elif(shown | (weight == 1)):
                    self._give(m, ord("0") + digit, None, "WEIGHT")
                with m.Else():
                    m.next = "WEIGHT"
            with m.State("WEIGHT"):
                m.d.sync += [digit.eq(0), weight.eq(Mux(weight == 100, 10, 1))]
                m.next = "DIGIT"
                with m.If(weight == 1):
                    m.d.sync += at.eq(at + 1)
                    m.next = "NEXT"
        return m

    def _give(self, m: Module, character: Any, at: Any, then: str) -> None:
        """Offer a character; when it is taken, go on in the state `then`, at the text's next place if `at`."""
        m.d.comb += [self.o.valid.eq(1), self.o.payload.eq(character)]
        with m.If(self.o.ready):
            m.next = then
            if at is not None:
                m.d.sync += at.eq(at + 1)
