"""Resources of an ECP5's netlist."""

from onnxhw.devices.ecp5.report import counts


def test_cells_are_counted_in_lut4_sites():
    kinds = {"LUT4": 100, "CCU2C": 30, "TRELLIS_DPR16X4": 2, "TRELLIS_FF": 50, "MULT18X18D": 4, "DP16KD": 3, "PFUMX": 7}
    named = {f"{kind}_{number}": kind for kind, count in kinds.items() for number in range(count)}
    assert counts(named) == {"LUT4": 172, "flip-flops": 50, "multipliers": 4, "block RAMs": 3}
    assert counts({}) == {"LUT4": 0, "flip-flops": 0, "multipliers": 0, "block RAMs": 0}
