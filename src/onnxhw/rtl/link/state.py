"""`LinkState`: what the link remembers."""

from amaranth import Signal

from ...isa.link import Status


class LinkState:
    """What the link remembers from frame to frame, and the answer under way. `external`: there is such a memory."""

    def __init__(self, external: bool = False) -> None:
        self.session = Signal(8)
        self.due = Signal(8)
        self.gap = Signal()
        """The host knows already that frames are missing."""
        self.token = Signal(24)
        self.loaded = Signal()
        if external:
            self.image = Signal()
            """External memory holds a complete image."""
            self.image_crc = Signal(32)
        self.dropped = Signal(16)
        self.status = Signal(Status)
        self.seq = Signal(8)
        self.kind = Signal(7)
        self.reply_address = Signal(24)
        self.index = Signal(8)
        self.left = Signal(8)
        """Words of the payload that are still to be written or sent."""
        self.phase = Signal(3)
        self.step = Signal(4)
        """Host words that a READ or WRITE passes over after each."""
        self.again = Signal()
        """A READ or POLL that was performed before."""
        self.kept = Signal(8)
        """Where the next word of the answer is kept, or was."""
        self.keep = Signal(8)
        """Where the next answer will be kept."""
        self.first = Signal()
        """The record of a WRITE begins: where to."""
        self.following = Signal(24)
        """The word of input that is next; 0 when they are complete, too."""
        self.complete = Signal()
        """Inputs are in their places, and no run has taken them."""
        self.armed = Signal()
        """A RUN waits for them."""
        self.passes = Signal()
        """A word was read a cycle ago: `host_addr` goes on to the next."""
        self.decides = Signal()
        """State DECIDE begins: the host port is aimed at what the command names."""
        self.streams = Signal()
        """State STREAM begins: it is aimed at words of input."""
        self.apart = Signal()
        """The next word written is the last count of a COMMIT, which stands apart."""
        self.forgets = Signal()
        """In the next cycle `complete` and `armed` end, as `following` does with `restarts`: many decide that."""
        self.restarts = Signal()
        self.clears = Signal()
        """The CRC of what is loaded begins anew."""
        self.late = Signal()
        """The frame at hand had to wait for a run."""
        self.running = Signal()
        """What the core told a cycle ago, as of the next five: it lies far from the link."""
        self.input_free = Signal()
        self.input_over = Signal()
        self.host_waiting = Signal()
        self.host_rvalid = Signal()
        self.host_rdata = Signal(32, reset_less=True)
        self.placed = Signal()
        """State PLACE ends: words of input are in their places, and the run that they may begin need not wait for the
        end of another one."""
        self.read = Signal()
        """In this cycle a word of input was read from the frame, which comes in the next but one."""
