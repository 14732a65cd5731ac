"""`check`: proves one program safe, from its instructions alone.

What is proved, for every input:

- every field fits its bits, every instruction means something (`bounds`) and every access lies in its memory (act,
  acc, weights, params, tables, microcode);
- the program ends (no ordering or weight deadlock), tiles loaded are the tiles taken, of the array and of the
  depthwise unit, and the predicted cycles are those of the timeline;
- lanes of an activation word are read only after they were written for the tensor that the word now
  holds (lanes that meet only weights of 0 do not matter), and no instruction that might run at the
  same time writes the word: RAW and WAR by the ordering fields, so the proof holds for any timing;
  WAW because vector instructions, the only writers, write in order (and read in order: so nor do they
  overwrite what one of them still reads);
- of programs with moves: the same of all memories that moves write, of external memory, and of the rings of microcode
  (`move_check`); and no move and another unit write one activation bank in the same cycle;
- an accumulator row is drained only after it was filled, and not filled meanwhile: nor is any row of its bank if the
  array fills it, or the depthwise unit with an instruction that accumulates;
- an instruction that is counted as completed early is over for whoever waits for it when that takes what it made;
- one reader per activation bank and cycle, by the timeline;
- each output is complete at the end, and each tensor of the table between its `ready` and `last`: all lane groups of
  its channels have been written. (That the words
  then hold this tensor and no other, and whatever is read the operand that is meant, the instructions do not tell:
  `reaching_definitions` proves it from the tasks that they are made of;)
- the input port writes the inputs to their places, and nothing else;
- no input is touched once as many instructions have completed as `DeviceProgram.input_free` says.

A program that fails is a compiler bug, `InternalError` E12xx with the instruction's text; or, if it came from a file,
none of ours (`onnxhw.program_verifier`).
"""

from ..errors import InternalError
from ..isa.timeline import Timeline, timeline
from ..isa.units import Unit
from ..program.model import DeviceProgram
from .accumulator_check import check_accumulators
from .activation_check import check_activations
from .bank_check import check_banks
from .bounds import bounds
from .checked_code import CheckedCode
from .early_completion import check_early
from .input_check import check_input_regions
from .input_release import check_window
from .move_check import Touched, check_moves
from .range_check import check_ranges
from .tensor_check import check_tensors


def check(program: DeviceProgram) -> Timeline:
    """Prove the program safe; returns its timeline."""
    bounds(program)
    checked = CheckedCode(program)
    check_ranges(checked)
    times = timeline(program.config, program.code)
    if times.cycles != program.cycles:
        raise InternalError("E1201", f"cycles must be {times.cycles}, not {program.cycles}")
    if program.code.get(Unit.MOVE):
        check_moves(program, times, Touched(checked.vector_reads, checked.vector_writes, checked.streams))
    else:
        check_activations(checked)
    check_accumulators(checked, times)
    check_early(checked)
    check_banks(checked, times)
    check_tensors(checked)
    check_input_regions(program)
    check_window(program, times)
    return times
