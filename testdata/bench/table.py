"""Prints what gpu.sh measured as tables: table.py RESULTS. Needs nothing but Python."""

import glob
import json
import os
import sys


def load(path):
    try:
        with open(path) as f:
            return json.load(f)
    except (OSError, ValueError):
        return None


def log_line(path):
    """The first line of the log beside a result."""
    try:
        with open(os.path.splitext(path)[0] + ".log") as f:
            return (f.readline().strip() or "no result")[:120]
    except OSError:
        return "no result"


def show(rows):
    if len(rows) < 2:
        return
    widths = [max(len(str(r[i])) for r in rows) for i in range(len(rows[0]))]
    for r in rows:
        print("| " + " | ".join(str(c).ljust(w) for c, w in zip(r, widths)) + " |")
        if r is rows[0]:
            print("|" + "|".join("-" * (w + 2) for w in widths) + "|")
    print()


def number(v, digits=4):
    return f"{v:.{digits}g}" if isinstance(v, (int, float)) else "-" if v is None else str(v)


def agreement(folder):
    rows = [["model", "format", "inputs", "max abs error", "result"]]
    failures = 0
    for path in sorted(glob.glob(os.path.join(folder, "agree.*.json"))):
        _, name, form, io, _ = os.path.basename(path).split(".")
        data = load(path)
        if data is None:
            failures += 1
            rows.append([name, form, io, "-", log_line(path)])
            continue
        found = [o["comparison"] for o in data.get("outputs", []) if o.get("comparison")]
        errors = [c["largest_absolute"]["error"] for c in found if c.get("largest_absolute")]
        largest = max((float(e) for e in errors), default=0.0)
        equal = bool(found) and all(c["equal"] for c in found)
        failures += not equal
        rows.append([name, form, io, number(largest, 3), "ok" if equal else "DIFFERS"])
    show(rows)
    if len(rows) > 1:
        print(f"{len(rows) - 1} comparisons, {failures} failed\n")


def bits_rows(cases):
    """A row for each folder: its cases in all formats and sizes together."""
    rows = {}
    for c in cases:
        row = rows.setdefault((c["folder"], bool(c.get("approximate"))), {"cases": 0, "kernels": 0, "outputs": 0, "elements": 0, "different": 0, "error": 0.0, "results": set()})
        row["cases"] += 1
        row["kernels"] = max(row["kernels"], c["kernels"])
        row["results"].add(c["result"])
        for o in c.get("outputs") or []:
            found = o.get("comparison") or {}
            row["outputs"] += 1
            row["elements"] += found.get("elements", 0)
            row["different"] += found.get("mismatches", 0)
            row["error"] = max(row["error"], float((found.get("largest_absolute") or {}).get("error", 0)))
    return sorted(rows.items())


def differences(cases):
    for c in cases:
        where = f"{c['folder']} {c['model']} {c['inputs']}"
        for o in c.get("outputs") or []:
            found = o.get("comparison") or {}
            if found and not found["equal"]:
                worst = found.get("worst_mismatch") or {}
                yield f"{where} {o['output']} {o['type']}: {found.get('problem') or ''}{found['mismatches']} differ, first {worst.get('at')}: {worst.get('got')}, emulator {worst.get('want')}"
        if c.get("error"):
            yield f"{where}: {c['error']}"


def bits(folder):
    """What weft conformance --exact found: what is equal, what is not, what instructions leave open, and where it differs."""
    for path in sorted(glob.glob(os.path.join(folder, "bits.*.json"))):
        name, data = os.path.basename(path)[len("bits.") : -len(".json")], load(path)
        if data is None:
            print(f"bits of {name}: {log_line(path)}\n")
            continue
        rows = bits_rows(data["cases"])
        print(f"{name}, equal: " + ", ".join(f"{program} ({row['elements']})" for (program, kind), row in rows if not kind and row["results"] == {"equal"}) + "\n")
        for approximate in (False, True):
            table = [["approximate" if approximate else "not equal", "kernels", "cases", "outputs", "elements", "different", "max error", "result"]]
            for (program, kind), row in rows:
                if kind == approximate and row["results"] != {"equal"}:
                    table.append([program, row["kernels"], row["cases"], row["outputs"], row["elements"], row["different"], number(row["error"], 3), ", ".join(sorted(row["results"]))])
            show(table)
        lines = list(differences(data["cases"]))
        for line in lines[:30]:
            print(line)
        if len(lines) > 30:
            print(f"... and {len(lines) - 30} more")
        exact = [c for c in data["cases"] if not c.get("approximate")]
        equal = sum(c["result"] == "equal" for c in exact)
        print(f"bits of {name} on {data['device']}: {equal} of {len(exact)} cases without approximate instructions equal the emulator bit for bit; "
              f"{sum(c['result'] == 'within' for c in data['cases'])} of {len(data['cases']) - len(exact)} with them within tolerance\n")


def check_of(data):
    checks = {c["check"]: c for c in (data.get("torch") or {}).get("checks") or []}
    weft, eager = checks.get("weft"), checks.get("eager")
    if weft is None:
        return "not checked"
    text = "ok" if weft["agrees"] else "DIFFERS"
    if eager and isinstance(eager["rms"], float) and eager["rms"] > 0 and isinstance(weft["rms"], (int, float)):
        text += f" ({weft['rms'] / eager['rms']:.2f}x eager's error)"
    return text


def modes_of(data):
    wrong = {c["check"] for c in (data.get("torch") or {}).get("checks") or [] if not c["agrees"]}
    times = {}
    for m in (data.get("torch") or {}).get("modes") or []:
        if not m.get("error"):
            times[m["mode"]] = (m["median_ms"], m["mode"] in wrong)
    return times


MODES = ["eager", "default", "reduce-overhead", "max-autotune"]


def measured(folder, kind):
    for path in sorted(glob.glob(os.path.join(folder, kind + ".*.json"))):
        yield os.path.basename(path)[len(kind) + 1 : -len(".json")], path, load(path)


def table_of(folder, kind):
    rows = [[kind, "output", "weft ms", "TFLOP/s", "GB/s"] + [m + " ms" for m in MODES] + ["eager / weft", "best / weft"]]
    for name, path, data in measured(folder, kind):
        if data is None or not (data.get("step") or {}).get("count"):
            rows.append([name, log_line(path)] + ["-"] * (len(rows[0]) - 2))
            continue
        weft = data["step"]["median_ms"]
        times = modes_of(data)
        # The whole of a program is one kernel or a few: what they move, by the time of the step.
        moved = sum(k["bytes"] * k["count"] for k in data.get("kernels") or [])
        row = [name, check_of(data), number(weft), number(data["flops"] / weft / 1e9) if data.get("flops") else "-", number(moved / weft / 1e6)]
        for m in MODES:
            row.append(number(times[m][0]) + ("!" if times[m][1] else "") if m in times else "-")
        right = [t for t, wrong in times.values() if not wrong]
        row.append(number(times["eager"][0] / weft, 3) if "eager" in times else "-")
        row.append(number(min(right) / weft, 3) if right else "-")
        rows.append(row)
    show(rows)


def longest(folder, count=8):
    """The kernels in which the models spend their time."""
    for name, _, data in measured(folder, "model"):
        kernels = (data or {}).get("kernels") or []
        if not kernels:
            continue
        rows = [[name, "ms a step", "launches", "ms", "GB/s", "TFLOP/s", "computes"]]
        for k in kernels[:count]:
            ms = k["time"]["median_ms"]
            if ms <= 0:
                continue
            rows.append([f"{100 * k['share']:.1f} %", number(ms * k["count"]), k["count"], number(ms), number(k["bytes"] / ms / 1e6, 3),
                         number(k.get("flops", 0) / ms / 1e9, 3) if k.get("flops") else "-", k.get("label", "")[:70]])
        show(rows)
        total = sum(k["time"]["median_ms"] * k["count"] for k in kernels)
        print(f"sum of kernels {number(total)} ms, step {number(data['step']['median_ms'])} ms, {data['launches']} launches\n")


def notes(folder):
    for kind in ("kernel", "model"):
        for name, _, data in measured(folder, kind):
            torch = (data or {}).get("torch") or {}
            for text in torch.get("notes") or []:
                print(f"{kind} {name}: {text}")
            for m in torch.get("modes") or []:
                if m.get("error"):
                    print(f"{kind} {name}, {m['mode']}: {m['error']}")


def main():
    folder = sys.argv[1]
    for kind in ("kernel", "model"):
        for _, _, data in measured(folder, kind):
            torch = (data or {}).get("torch")
            if torch:
                print(f"PyTorch {torch['version']} on {torch['device']}; weft on {data['device']}; times by {data['clock']}\n")
                break
        else:
            continue
        break
    bits(folder)
    agreement(folder)
    table_of(folder, "kernel")
    table_of(folder, "model")
    print("A time marked ! is of a mode whose own outputs differ from float64. Ratios are PyTorch's time by weft's: over 1, weft is faster.\n")
    longest(folder)
    notes(folder)


if __name__ == "__main__":
    main()
