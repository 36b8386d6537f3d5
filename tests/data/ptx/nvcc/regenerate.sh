#!/usr/bin/env bash
# Compile tests/data/cuda/*.cu to PTX with nvcc (13.0 made what is committed). Run from the repository root;
# words on the command line name the files to make, e.g. `objects.sm_80 objects.sm_120a`. NVCC names another nvcc:
# those of 13.5 (`.next`) are made with `pip install nvidia-cuda-nvcc nvidia-cuda-cccl` and NVCC=…/nvidia/cu13/bin/nvcc.
# The sources are compiled from /project so that no path of this machine gets into the PTX; `.file` paths are made relative.
set -eu
out=$PWD/tests/data/ptx/nvcc
work=$(mktemp -d)
[ ! -e /project ] || { echo "regenerate.sh: /project exists"; exit 1; }
mkdir -p /project/tests/data
trap 'rm -rf "$work" /project' EXIT
cp -r tests/data/cuda /project/tests/data/cuda
cd /project
only=" $* "
one() { # name source options…
  local name=$1 source=$2
  shift 2
  [ "$only" = "  " ] || [[ $only = *" $name "* ]] || return 0
  "${NVCC:-nvcc}" -std=c++17 -ptx "$@" "tests/data/cuda/$source.cu" -o "$work/$name.ptx"
  sed -i -E '/^[[:space:]]*\.file/s#"/project/#"#; /^[[:space:]]*\.file/s#"/.*/include/#"cuda/include/#' "$work/$name.ptx"
  rm -f "$out/$name.ptx" "$out/$name.ptx.xz"
  if [ "$(stat -c %s "$work/$name.ptx")" -gt 49152 ]; then
    xz -9e "$work/$name.ptx" && mv "$work/$name.ptx.xz" "$out"
  else
    mv "$work/$name.ptx" "$out"
  fi
}
one control.sm_75 control -arch=sm_75
one control.sm_90.debug control -arch=sm_90 -G
one control.sm_100a control -arch=sm_100a
one control.sm_90a.lines control -arch=sm_90a -lineinfo
one control.sm_80.relocatable control -arch=sm_80 -rdc=true
one memory.sm_75 memory -arch=sm_75
one memory.sm_90a.lines memory -arch=sm_90a -lineinfo
one memory.sm_100a.debug memory -arch=sm_100a -G
one arithmetic.sm_80 arithmetic -arch=sm_80
one arithmetic.sm_90a arithmetic -arch=sm_90a
one arithmetic.sm_120a.fast arithmetic -arch=sm_120a -use_fast_math
one warps.sm_75 warps -arch=sm_75
one warps.sm_80 warps -arch=sm_80
one warps.sm_90a.lines warps -arch=sm_90a -lineinfo
one warps.sm_90.debug warps -arch=sm_90 -G
one launchable.sm_75 launchable -arch=sm_75
one launchable.sm_90a launchable -arch=sm_90a
one launchable.sm_90a.lines launchable -arch=sm_90a -lineinfo
one algorithms.sm_75 algorithms -arch=sm_75
one algorithms.sm_90a.lines algorithms -arch=sm_90a -lineinfo
one tensor.sm_80 tensor -arch=sm_80
one tensor.sm_90a.lines tensor -arch=sm_90a -lineinfo
one blackwell.sm_100a blackwell -arch=sm_100a
one numbers.sm_80 numbers -arch=sm_80
one numbers.sm_90a.lines numbers -arch=sm_90a -lineinfo
one numbers.sm_120a numbers -arch=sm_120a
one objects.sm_80 objects -arch=sm_80
one objects.sm_90a.lines objects -arch=sm_90a -lineinfo
one objects.sm_120a objects -arch=sm_120a
one objects.sm_90.debug objects -arch=sm_90 -G
one orders.sm_80 orders -arch=sm_80
one orders.sm_90a.lines orders -arch=sm_90a -lineinfo
one orders.sm_120a orders -arch=sm_120a
one devices.sm_80 devices -arch=sm_80
one devices.sm_90 devices -arch=sm_90
one devices.sm_120 devices -arch=sm_120
one hopper.sm_90a.lines hopper -arch=sm_90a -lineinfo
one hopper.sm_120a hopper -arch=sm_120a
one recursion.sm_80 recursion -arch=sm_80
one recursion.sm_90a.lines recursion -arch=sm_90a -lineinfo
one recursion.sm_120a recursion -arch=sm_120a
one recursion.sm_90.debug recursion -arch=sm_90 -G
one refused.sm_90.relocatable refused -arch=sm_90 -rdc=true
one libraries.sm_80 libraries -arch=sm_80
one libraries.sm_90a.lines libraries -arch=sm_90a -lineinfo
one libraries.sm_90.debug libraries -arch=sm_90 -G -DSMALL
if [ -n "${NVCC:-}" ]; then
  one objects.sm_120a.next objects -arch=sm_120a
  one orders.sm_90a.next orders -arch=sm_90a
  one numbers.sm_80.next numbers -arch=sm_80
fi
