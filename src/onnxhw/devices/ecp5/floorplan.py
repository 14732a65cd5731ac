"""Where the array's multipliers go on the device: a placer left alone scatters their columns over the whole chip.

The multipliers of an ECP5 lie in a few rows across the chip, in groups of four. The array is laid into them so that its
reduction runs along a row: element (r, c) of the q columns that share a row takes the row's site ``r * q + c % q``. A
row of fewer columns leaves sites between them, and the lanes of the requantizer use these.
Sums then step over q sites, activations to the next site, and weights come in from one side (`SystolicArray` delays
them by `weight_hops`). The column of activation products is the first.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from ...config import HwConfig
from ...isa.fields import WORD_BITS
from ...isa.memory import PARAM_BITS, param_shape
from ...isa.units import Unit, ucode_words
from ...rtl.kernel_window import SHORT
from ...rtl.weight_blocks import blocks, tail
from .. import block_ram

GROUP = ((0, "MULT18_0"), (1, "MULT18_1"), (4, "MULT18_4"), (5, "MULT18_5"))
"""Column, from the group's first, and name of a group's four multipliers."""
OFFSETS = {name: offset for offset, name in GROUP}
ROWS = {"LFE5U-85F": (10, 34, 58)}
"""Rows of the chip that hold multipliers."""
GROUPS = {"LFE5U-85F": (*range(4, 59, 9), *range(69, 115, 9))}
"""First columns of a row's groups, left to right."""
EBR_GROUP = ((0, "EBR0"), (2, "EBR1"), (4, "EBR2"), (6, "EBR3"))
"""The same of the block RAMs, whose groups have the multipliers' columns."""
MEMORY_ROWS = {"LFE5U-85F": (22, 46, 70, 82)}
"""Rows of block RAMs used for activations, for accumulators and weights, for the other weights, and if activations fill
the first for the weights instead."""
LINK = {"link_input": 2, "link_frame": 1, "link_description": 1, "link_reply": 1, "link_start": 1}
"""Block RAMs of the link's memories, in the order of their places."""

Place = tuple[int, int]
"""A row of the chip and the number of a block RAM's site in it, from the left."""


@dataclass(frozen=True)
class FloorPlan:
    """nextpnr's names of places by role (`onnxhw.rtl.cells.Primitives`); what has none goes anywhere."""

    multipliers: Mapping[str, str] = field(default_factory=dict)
    memories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """In the order of `block_ram.plan`."""


def plan(device: str, config: HwConfig) -> FloorPlan:
    """The floor plan of a configuration; empty where the device is not known or the array too large for it."""
    array = array_sites(device, config) if config.multiplier == "dsp" else {}
    multipliers = {f"products_{e}" if c < 0 else f"pe_{e}_{c}": site for (e, c), site in array.items()}
    for q, lane in enumerate(lane_sites(device, config)):
        multipliers |= {f"lane_{q}_{index}": site for index, site in enumerate(lane)}
    memories = memory_sites(device, config)
    for q, site in enumerate(memories.pop("tables", ())):
        memories[f"tables_{q}"] = (site,)
    link = memories.pop("link", ())
    for role, count in LINK.items() if link else ():
        memories[role], link = link[:count], link[count:]
    return FloorPlan(multipliers, memories)


def array_sites(device: str, config: HwConfig) -> dict[tuple[int, int], str]:
    """Site names by (element, column) of an array, the activation products' column is -1. Elements whose multiplier is
    fabric have none, and leave theirs free.

    Empty where the device is not known or the array too large.
    """
    if device not in ROWS:
        return {}
    lines, groups = ROWS[device], GROUPS[device]
    first = -1 if config.fast else 0
    rows, cols = config.rows // config.element_rows, config.cols - first
    for used in range(1, len(lines) + 1):
        shared = -(-cols // used)
        if rows * shared <= len(GROUP) * len(groups):
            break
    else:
        return {}
    found = {}
    for c in range(cols):
        line, place = lines[c // shared], c % shared
        for r in range(rows):
            group, member = divmod(r * shared + place, len(GROUP))
            offset, name = GROUP[member]
            if config.array_style(r, first + c) == "dsp":
                found[r, first + c] = f"X{groups[group] + offset}/Y{line}/{name}"
    return found


def group_of(site: str) -> str:
    """Which group of four a multiplier's site is in, as ``x_y`` of the group's first; empty for no site."""
    if not site:
        return ""
    x, y, name = site.split("/")
    return f"{int(x[1:]) - OFFSETS[name]}_{y[1:]}"


def lane_sites(device: str, config: HwConfig) -> list[list[str]]:
    """Site names of each requantizer lane's multipliers, side by side where the array leaves room, where fewest columns
    of the chip lie between lanes and their tables; empty as there."""
    taken = set(array_sites(device, config).values()) if config.multiplier == "dsp" else set()
    count = min(config.requant_dsps, 4)  # the product's; the fifth multiplier goes anywhere
    if not taken or not count:
        return [[]] * config.lanes
    lines = [line for line in ROWS[device] if any(f"/Y{line}/" in site for site in taken)]
    free = [
        site
        for line in reversed(lines)
        for group in GROUPS[device]
        for offset, name in GROUP
        if (site := f"X{group + offset}/Y{line}/{name}") not in taken
    ]
    wanted = count * config.lanes
    if len(free) < wanted:
        return [[]] * config.lanes
    tables = memory_sites(device, config).get("tables", ())

    def far(skipped: int) -> int:
        mine = free[skipped : skipped + wanted : count]
        return sum(abs(_x(site) - _x(table)) for site, table in zip(mine, tables, strict=False))

    first = min(range(len(free) - wanted + 1), key=far)
    return [free[first + q * count : first + (q + 1) * count] for q in range(config.lanes)]


def _x(site: str) -> int:
    """The column of the chip that a site is in."""
    return int(site[1:].partition("/")[0])


def memory_sites(device: str, config: HwConfig) -> dict[str, tuple[str, ...]]:
    """Site names of the large memories' block RAMs by memory, in the order of `block_ram.plan`; empty as for
    `array_sites`.

    Activation banks lie above the array, lane by lane as the array takes them, around the microcode, whose fetchers
    stand where the addresses are made; accumulators where the sums come out, the lanes' parameters and tables below
    them, the depthwise unit's sums beside these; weights where they go in, or if a word is a whole tile, from left to
    right as the rows of the array are and down as its columns. Where activations fill the near row, other weights lie
    in the last row, and what nobody places (the link's memories, there) finds room between. Microcode, window sums,
    parameters, tables and the link's memories have places only where a weight word is a whole tile: smaller arrays do
    not reach across the chip. If few block RAMs are left without a place there should be none: nextpnr's placer
    "static" does not end while 15 % of those that it may move lie upon each other. The keys are ``act_<bank>``,
    ``acc_<bank>``, ``ucode_<unit>``, ``params``, ``tables`` (a site for each lane), ``window``, ``link`` (as in
    `LINK`) and ``weights <block>``.
    """
    if device not in MEMORY_ROWS or not array_sites(device, config):
        return {}
    near, middle, far, last = MEMORY_ROWS[device]
    per_row, whole = len(EBR_GROUP) * len(GROUPS[device]), config.tile_words == 1
    parts = blocks(config)
    tiles = block_ram.plan(8 * len(parts[0].bytes), config.weight_depth - tail(config), 8)
    weights = len(parts) * len(tiles)
    ucode = {unit: _tiles(WORD_BITS, words, WORD_BITS) for unit in Unit if (words := _ucode_words(config, unit))}
    served = [*_window(config), *_served(config)]
    if not whole:
        ucode, served = {}, []
    row, banks = config.cols * config.acc_bits, config.act_banks
    act, acc = _tiles(8 * config.word, config.act_depth, 8), _tiles(row, config.acc_depth, row)
    for programs, lanes in ((sum(ucode.values()), len(served)), (sum(ucode.values()), 0), (0, 0)):
        first = (per_row - programs) // 2  # of the microcode, in the near row's middle
        around = [*range(first), *range(first + programs, per_row)]
        above = min(act, len(around) // banks)  # tiles of each bank there; the last ones lie below the array's end
        below = banks * (act - above)
        room = per_row - 2 * acc - below
        apart = below > 0 and not whole and weights <= per_row
        if room >= 0 and lanes <= per_row and (apart or weights <= room + per_row - lanes + per_row * whole):
            break
    else:
        return {}
    found: dict[str, list[Place]] = {}
    for bank, upper in enumerate(_across(_above(config, act, above, len(around)), around)):
        lower = [(middle, room + (tile - above) * banks + bank) for tile in range(above, act)]
        found[f"act_{bank}"] = [*((near, place) for place in upper), *lower]
    if len(found["act_0"]) != _sliced(config):
        del found["act_0"]
    for bank in range(2):
        found[f"acc_{bank}"] = [(middle, room + below + 2 * tile + bank) for tile in range(acc)]
    for unit, count in ucode.items() if programs else ():
        found[f"ucode_{unit}"] = [(near, first + tile) for tile in range(count)]
        first += count
    for number, memory in enumerate(served if lanes else ()):
        found.setdefault(memory, []).append((far, per_row - lanes + number))
    free = [*((middle, place) for place in range(room)), *((far, place) for place in range(per_row - lanes))]
    link, linked = 0, range(0)
    if apart:
        free = [(last, place) for place in range(per_row)]
    if whole:
        rest = max(0, weights - len(free))
        link = sum(LINK.values()) if rest <= per_row - sum(LINK.values()) else 0
        # At the left; in the middle where there is an external memory, whose pins lie at the right: the link is to
        # reach its controller as well as the core.
        begin = (per_row - link) // 2 if config.external else 0
        linked = range(begin, begin + link)
        others = [place for place in range(per_row) if place not in linked]
        free += [(last, others[number * len(others) // rest]) for number in range(rest)]
        order = _by_rows(free[:weights], config.cols)
    else:
        order = _by_columns(free, parts[0].bytes, tiles, config.cols)
    if link:
        found["link"] = [(last, place) for place in linked]
    for n, part in enumerate(parts):
        found[f"weights {part.name}"] = order[n * len(tiles) : (n + 1) * len(tiles)]
    return {name: tuple(_site(device, *place) for place in places) for name, places in found.items()}


def _sliced(config: HwConfig) -> int:
    """Block RAMs of bank 0, whose slices have read addresses of their own and may need more than the other banks."""
    return len(block_ram.plan(8 * config.word, config.act_depth, 8, config.slices))


def _above(config: HwConfig, act: int, above: int, room: int) -> list[int]:
    """Block RAMs of each bank above the array, where there is room for so many: `above` of `act`, and what bank 0 has
    more, if all of it lies there."""
    more = _sliced(config) - act
    fits = above == act and above * config.act_banks + more <= room
    return [above + more * fits, *[above] * (config.act_banks - 1)]


def _across(counts: list[int], places: list[int]) -> list[list[int]]:
    """Places of banks of so many block RAMs: lane by lane, as a bank's are, spread over all places."""
    order = sorted((Fraction(tile, count), bank) for bank, count in enumerate(counts) for tile in range(count))
    found: list[list[int]] = [[] for _ in counts]
    for number, (_, bank) in enumerate(order):
        found[bank].append(places[number * len(places) // len(order)])
    return found


def _tiles(width: int, depth: int, granularity: int) -> int:
    """Block RAMs of a memory."""
    return len(block_ram.plan(width, depth, granularity))


def _ucode_words(config: HwConfig, unit: Unit) -> int:
    """Words of a unit's microcode that lie in block RAMs."""
    return 0 if unit.in_luts(config) else ucode_words(config, unit)


def _served(config: HwConfig) -> list[str]:
    """Lane by lane, the memories "params" and "tables" of which a block RAM serves it; none where they are deep."""
    params = block_ram.plan(*param_shape(config), 8)
    tables = block_ram.plan(8, 256 * config.tables, 8)
    if len({tile.base for tile in params}) > 1 or len(tables) > 1:
        return []
    lanes = [tile.slots[0].low // PARAM_BITS for tile in params]
    return [name for lane in range(config.lanes) for name in ["params"] * lanes.count(lane) + ["tables"]]


def _window(config: HwConfig) -> list[str]:
    """The depthwise unit's sums, if they lie in block RAMs: "window" for each."""
    row = config.depthwise_lanes * config.sum_bits
    placed = config.depthwise and config.window_depth > SHORT
    return ["window"] * _tiles(row, config.window_depth, row) if placed else []


def _by_rows(free: list[Place], cols: int) -> list[Place]:
    """Places of the blocks of whole-tile words, which come row of blocks by row of blocks, column by column."""
    left_to_right = sorted(free, key=lambda place: (place[1], place[0]))
    groups = (left_to_right[first : first + cols] for first in range(0, len(free), cols))
    return [place for group in groups for place in sorted(group)]


def _by_columns(
    free: list[Place], lanes: tuple[int, ...], tiles: tuple[block_ram.BlockRamTile, ...], cols: int
) -> list[Place]:
    """Places of the tiles of one memory, those that hold the same columns of the array side by side."""
    column = [lanes[tile.slots[0].low // 8] % cols for tile in tiles]
    order = sorted(range(len(tiles)), key=lambda number: column[number])
    rank = {number: place for place, number in enumerate(order)}
    return [free[rank[number]] for number in range(len(tiles))]


def _site(device: str, line: int, index: int) -> str:
    """nextpnr's name of the block RAM `index` of a row."""
    group, member = divmod(index, len(EBR_GROUP))
    offset, name = EBR_GROUP[member]
    return f"X{GROUPS[device][group] + offset}/Y{line}/{name}"
