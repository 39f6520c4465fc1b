package main

import (
	"slices"

	"weft"
	"weft/ir/diag"
	weftruntime "weft/runtime"
	"weft/runtime/cuda"
)

// nativeTarget stands for the GPUs of this machine.
const nativeTarget = "native"

// resolveNative replaces --target native by the targets of the GPUs that the driver shows.
func resolveNative(targets []string) ([]string, error) {
	i := slices.Index(targets, nativeTarget)
	if i < 0 {
		return targets, nil
	}
	gpus, err := presentGPUs()
	if err != nil {
		return nil, diag.Errorf(diag.DeviceUnavailable, "", "--target native asks the driver for the GPUs of this machine: %v", err).Because(err).
			Suggest("name the GPUs to compile for: --target sm_80; `weft doctor` shows what was found")
	}
	found, err := targetsOf(gpus)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, t := range slices.Concat(targets[:i], found, targets[i+1:]) {
		if !slices.Contains(list, t) && t != nativeTarget {
			list = append(list, t)
		}
	}
	return list, nil
}

func presentGPUs() ([]weftruntime.Properties, error) {
	count, err := cuda.Count()
	if err != nil {
		return nil, err
	}
	var gpus []weftruntime.Properties
	for i := range count {
		device, err := cuda.Open(i)
		if err != nil {
			return nil, err
		}
		gpus = append(gpus, device.Properties())
		if err := device.Close(); err != nil {
			return nil, err
		}
	}
	return gpus, nil
}

// targetsOf gives the best target of each GPU, each once, in the order of weft.Targets.
func targetsOf(gpus []weftruntime.Properties) ([]string, error) {
	var found []string
	for _, p := range gpus {
		t, err := weftruntime.ChooseTarget(weft.Targets(), "", p)
		if err != nil {
			return nil, diag.Errorf(diag.DeviceUnavailable, "", "%s has compute capability %d.%d, which weft does not compile for", p.Name, p.ComputeMajor, p.ComputeMinor).
				Note("targets: %s", listText(weft.Targets()))
		}
		found = append(found, t)
	}
	if len(found) == 0 {
		return nil, diag.Errorf(diag.DeviceUnavailable, "", "the driver shows no GPU").Suggest("name the GPUs to compile for: --target sm_80")
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}
