"""Record the digests of the gate (`tests/gate/digests.json`) anew, and say what has changed.

    python scripts/record_digests.py [--cycles] [--quick]

Cycles that change are refused unless `--cycles` says that they are meant to. The reference networks keep their lines
where `../shared/models` is absent. With `--quick`, so do they everywhere, and the RTLIL of the presets: these take
minutes.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "gate"), str(ROOT / "tests" / "netlist")]

import gate_models  # noqa: E402
import gate_store  # noqa: E402


def main(words: list[str] | None = None) -> int:
    """Exit status: 1 if cycles have changed and may not; then nothing is written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", action="store_true", help="cycles may change")
    parser.add_argument("--quick", action="store_true", help="only what the quick tests compare")
    options = parser.parse_args(words)
    before = gate_store.recorded() if gate_store.FILE.is_file() else {"images": {}, "rtl": {}}

    images = {key: lines for key, lines in before["images"].items() if key.split()[0] in gate_store.LARGE}
    for name in gate_models.MODELS:
        images |= gate_store.images(name)
    for name in () if options.quick else gate_store.LARGE:
        if (gate_store.REFERENCE / f"{name}.onnx").is_file():
            images |= gate_store.images(name)
        else:
            print(f"{name}: not here ({gate_store.REFERENCE}), its lines stay")
    rtl = dict(before["rtl"])
    for name in [gate_store.SMALL.name] if options.quick else gate_store.CONFIGS:
        rtl |= gate_store.rtl(name)

    for section, found in (("images", images), ("rtl", rtl)):
        for line in gate_store.changes(before[section], found):
            print(line)
        for key in sorted(before[section].keys() - found.keys()):
            print(f"{key}: gone")
    if (changed := gate_store.changed_cycles(before["images"], images)) and not options.cycles:
        print("", "Cycles have changed, so nothing is written; if that is meant: --cycles", *changed, sep="\n")
        return 1
    gate_store.record(images, rtl)
    print(*changed, f"{len(images)} pairs and {len(rtl)} designs recorded", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
