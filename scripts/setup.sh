#!/bin/sh
# Sets up a virtual environment with onnxhw and all extras: setup.sh PYTHON VENV.
#
# Needs only a Python >= 3.10. Where the C++ compiler (CXXRTL simulation), Icarus Verilog (cocotb and netlist
# simulation) or Debian's python3-venv are missing it installs them with apt-get, and says so;
# without apt-get or the right to use it, it says what to install by hand and goes on if it can.
set -eu
python=$1
venv=$2

say() { printf '%s\n' "setup: $*" >&2; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null 2>&1; then say "(sudo: $*)"; sudo "$@"
    else return 1
    fi
}

updated=no
apt_install() {
    say "installing with apt-get: $*"
    command -v apt-get >/dev/null 2>&1 || return 1
    if [ $updated = no ]; then as_root apt-get update -qq >&2 || return 1; updated=yes; fi
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2
}

command -v "$python" >/dev/null 2>&1 || {
    say "no $python here: install Python 3.10 or later (Debian: apt install python3), or make PYTHON=..."; exit 7; }
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
    say "Python must be 3.10 or later, not $("$python" -V 2>&1): make PYTHON=python3.12"; exit 7; }

missing=
command -v g++ >/dev/null 2>&1 || command -v clang++ >/dev/null 2>&1 || missing="$missing g++"
command -v iverilog >/dev/null 2>&1 || missing="$missing iverilog"
if [ -n "$missing" ]; then
    # shellcheck disable=SC2086  # a list of packages
    apt_install $missing || say "could not install:$missing. Without g++ there is no CXXRTL simulation," \
        "without iverilog no cocotb simulation; install them and run 'onnxhw doctor'."
fi

if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    say "creating $venv with $("$python" -V 2>&1)"
    rm -rf "$venv"
    "$python" -c 'import ensurepip, venv' 2>/dev/null || apt_install python3-venv \
        || { say "this Python has no venv module: install python3-venv (Debian, Ubuntu) and try again"; exit 7; }
    "$python" -m venv "$venv"
fi

say "installing onnxhw and its Python packages (several hundred megabytes, once)"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade pip
"$venv/bin/python" -m pip install --disable-pip-version-check --progress-bar off -e '.[all]' >&2
say "ready: $venv/bin/onnxhw"
