#!/bin/sh
# Derives coefficients.go anew where coefficients.sum says that the generator or its output is not what it was: that takes some
# minutes, and a Python with mpmath (PYTHON names it). REDERIVE=1 does so in any case.
set -eu
cd "$(dirname "$0")"
if [ -z "${REDERIVE:-}" ] && sha256sum --check --status coefficients.sum; then
	exit
fi
python=${PYTHON:-python3}
"$python" -c 'import mpmath' 2>/dev/null || {
	echo "coefficients.go must be derived anew, which needs mpmath: $python -m pip install mpmath gmpy2" >&2
	exit 1
}
new=$(mktemp)
trap 'rm -f "$new"' EXIT
"$python" coefficients.py >"$new"
gofmt "$new" >coefficients.go
sha256sum coefficients.py coefficients.go >coefficients.sum
