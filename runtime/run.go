package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"weft/ir"
	"weft/ir/diag"
	"weft/ir/plan"
)

// Result is what a run gives.
type Result struct {
	Outputs []*ir.Tensor     // of the caller, in the order of the entry; of a rank, its part
	Dims    map[string]int64 // the sizes of the symbolic dims
}

// Run is RunContext without a way to cancel it.
func (s *Session) Run(entry string, inputs []*ir.Tensor) (*Result, error) {
	return s.RunContext(context.Background(), entry, inputs)
}

// RunContext runs an entry once: it uploads the inputs, runs the plan, whose new states stay on the
// device, and downloads the outputs. An empty name stands for the only entry that there is.
// Inputs are the caller's, in the order of the entry; what is wrong with them is reported
// before anything runs. The context is looked at before each decision of an if or a while:
// when it is done, the run ends there, states keep what was written to them so far, and the
// error is the context's. All other errors are diagnostics.
func (s *Session) RunContext(ctx context.Context, entry string, inputs []*ir.Tensor) (*Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bind(entry, inputs)
	if err != nil {
		s.abort(err)
		return nil, err
	}
	if err := b.enqueue(ctx); err != nil {
		return nil, b.failed(err)
	}
	outputs, err := b.download()
	if err != nil {
		s.abort(err)
		return nil, err
	}
	return &Result{Outputs: outputs, Dims: maps.Clone(b.bound.Dims)}, nil
}

// Bind prepares an entry for the sizes of the inputs and uploads these, for runs without
// transfers: Replay any number of times, Synchronize, Download. The binding keeps its memory
// until it is closed. Ranks with a Communicator bind and close in the same order.
func (s *Session) Bind(entry string, inputs []*ir.Tensor) (*Binding, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bind(entry, inputs)
	if err != nil {
		return nil, err
	}
	b.held = true
	return b, nil
}

// bind finds the binding for inputs and uploads them.
func (s *Session) bind(name string, inputs []*ir.Tensor) (*Binding, error) {
	if s.closed {
		return nil, errClosed
	}
	e, err := s.entry(name)
	if err != nil {
		return nil, err
	}
	b, err := s.binding(e, inputs)
	if err != nil {
		return nil, err
	}
	return b, b.upload(inputs)
}

// Upload replaces the inputs by others of the same sizes.
func (b *Binding) Upload(inputs []*ir.Tensor) error {
	return b.locked(func() error {
		dims, err := b.session.bindDims(b.entry, inputs)
		if err != nil {
			return err
		}
		if !b.has(dims) {
			return diag.Errorf(diag.RunInputShape, fmt.Sprintf("entry %q", b.entry.plan.Entry), "the inputs have other sizes than those of the binding").
				Note("bound to %v, given %v", b.bound.Dims, dims)
		}
		return b.upload(inputs)
	})
}

// upload copies checked inputs to the device, when no run reads the earlier ones any more.
func (b *Binding) upload(inputs []*ir.Tensor) error {
	device := b.session.device
	if err := device.Synchronize(); err != nil {
		return b.failed(err)
	}
	for k, i := range b.entry.inputs {
		buffer := b.entry.inputBuffers[i]
		if buffer < 0 || b.bound.Sizes[buffer] == 0 {
			continue
		}
		if err := b.uploadInput(b.entry.plan.Inputs[i], &memory{at: b.pointers[buffer], size: b.bound.Sizes[buffer]}, inputs[k]); err != nil {
			return b.failed(err)
		}
	}
	return nil
}

// Replay is ReplayContext without a way to cancel it.
func (b *Binding) Replay() error { return b.ReplayContext(context.Background()) }

// ReplayContext enqueues one run on the device's stream 0. It waits for the device only where
// an if or a while needs its predicate; there the context can end the run, as in RunContext.
func (b *Binding) ReplayContext(ctx context.Context) error {
	return b.locked(func() error {
		if err := b.enqueue(ctx); err != nil {
			return b.failed(err)
		}
		return nil
	})
}

// Synchronize waits for all that was enqueued.
func (b *Binding) Synchronize() error {
	return b.locked(func() error {
		if err := b.session.device.Synchronize(); err != nil {
			return b.failed(err)
		}
		return nil
	})
}

// Download waits for the last run and gives the outputs of the caller.
func (b *Binding) Download() (outputs []*ir.Tensor, err error) {
	err = b.locked(func() error {
		outputs, err = b.download()
		return err
	})
	return outputs, err
}

// Dims are the sizes of the symbolic dims.
func (b *Binding) Dims() map[string]int64 { return maps.Clone(b.bound.Dims) }

// Memory is what the plan needs with these sizes.
func (b *Binding) Memory() plan.Memory { return b.bound.Memory() }

// Close lets go of the binding. The session keeps it for later runs while there is room.
func (b *Binding) Close() error {
	return b.locked(func() error {
		b.held = false
		return nil
	})
}

func (b *Binding) locked(f func() error) error {
	b.session.mu.Lock()
	defer b.session.mu.Unlock()
	if b.session.closed || !b.held {
		return errClosed
	}
	return f()
}

// failed describes an error of a run. The other ranks of a mesh need not wait for this one.
func (b *Binding) failed(err error) error {
	err = deviceError(b.entry.plan.Entry, err)
	b.session.abort(err)
	return err
}

// deviceError makes a diagnostic of what a device reports; a run that was cancelled is none, and
// communicators give diagnostics.
func deviceError(place string, err error) error {
	var known *diag.Diagnostic
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &known) {
		return err
	}
	return diag.Errorf(diag.RunDevice, place, "%v", err).Because(err)
}

func (b *Binding) download() ([]*ir.Tensor, error) {
	p, device := b.entry.plan, b.session.device
	if err := device.Synchronize(); err != nil {
		return nil, b.failed(err)
	}
	outputs := make([]*ir.Tensor, len(b.entry.outputs))
	for k, i := range b.entry.outputs {
		t := p.Outputs[i]
		shape, err := evalShape(t.Shape, b.bound.Dims)
		if err != nil {
			return nil, err
		}
		outputs[k] = ir.NewTensor(t.Type().DType, shape...)
		if len(outputs[k].Data) == 0 {
			continue
		}
		if err := device.Download(outputs[k].Data, b.pointers[b.entry.outputBuffers[i]]); err != nil {
			return nil, deviceError(fmt.Sprintf("output %q", t.Name), err)
		}
	}
	return outputs, nil
}

// enqueue enqueues a run: its stretches as captured graphs where the device can capture.
func (b *Binding) enqueue(ctx context.Context) error {
	capturer, ok := b.session.device.(Capturer)
	if !ok || b.session.options.NoGraph || b.session.tracer.stepByStep() {
		capturer = nil
	}
	b.session.recorder.begin(b.entry.plan.Entry)
	if err := b.session.tracer.begin(b); err != nil {
		return err
	}
	return b.runBlock(ctx, b.work, capturer)
}

// runBlock runs a block. It waits for the device where a decision is to be made, and only
// there looks at the context.
func (b *Binding) runBlock(ctx context.Context, l block, capturer Capturer) error {
	for _, s := range l {
		if err := b.runStretch(ctx, s, capturer); err != nil {
			return err
		}
		if s.meets != nil {
			if err := b.timed(0, s.meets.Step, func() error { return b.meet(ctx, 0, s.meets) }); err != nil {
				return err
			}
		}
		if s.choice == nil {
			continue
		}
		if err := b.decide(ctx, s.choice, capturer); err != nil {
			return err
		}
	}
	return nil
}

// decide runs an if or a while.
func (b *Binding) decide(ctx context.Context, c *decision, capturer Capturer) error {
	for {
		if err := b.runBlock(ctx, c.condition, capturer); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		var predicate [1]byte
		if err := b.session.device.Download(predicate[:], c.predicate); err != nil {
			return err
		}
		chosen := c.yes
		if predicate[0] == 0 {
			chosen = c.no
		}
		if err := b.runBlock(ctx, chosen, capturer); err != nil {
			return err
		}
		if !c.loop || predicate[0] == 0 {
			return nil
		}
	}
}

// runStretch enqueues the work of a stretch.
func (b *Binding) runStretch(ctx context.Context, s *stretch, capturer Capturer) error {
	if capturer == nil || len(s.work) == 0 {
		return b.enqueueWork(ctx, s.work, b.meet)
	}
	if s.graph == nil {
		var err error
		if s.graph, err = b.capture(ctx, s, capturer); err != nil {
			return err
		}
	}
	b.session.recorder.issue(s.work[0].step)
	for _, c := range s.work {
		if c.meets != nil {
			b.session.number(c.meets)
		}
	}
	if err := b.session.tracer.replay(s); err != nil {
		return err
	}
	return s.graph.Replay(0)
}

func (b *Binding) capture(ctx context.Context, s *stretch, capturer Capturer) (Graph, error) {
	if err := capturer.BeginCapture(0); err != nil {
		return nil, err
	}
	b.session.tracer.record(s)
	defer b.session.tracer.record(nil)
	err := b.enqueueWork(ctx, s.work, func(ctx context.Context, stream Stream, c *Collective) error {
		return b.session.options.Communicator.Collective(ctx, stream, *c)
	})
	graph, end := capturer.EndCapture(0)
	if err != nil {
		if end == nil {
			end = graph.Close()
		}
		return nil, errors.Join(err, end)
	}
	return graph, end
}

// enqueueWork enqueues steps one by one, collectives by meet.
func (b *Binding) enqueueWork(ctx context.Context, work []command, meet func(context.Context, Stream, *Collective) error) error {
	timed := func(ctx context.Context, stream Stream, c *Collective) error {
		return b.timed(stream, c.Step, func() error { return meet(ctx, stream, c) })
	}
	for _, c := range work {
		var err error
		b.session.recorder.issue(c.step)
		switch {
		case c.nothing:
		case c.meets != nil && c.meets.Async:
			err = b.start(ctx, c.meets, timed)
		case c.meets != nil:
			err = timed(ctx, 0, c.meets)
		default:
			err = b.timed(0, c.step, func() error { return b.issue(c) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// issue enqueues a step that is no collective.
func (b *Binding) issue(c command) error {
	device := b.session.device
	switch {
	case c.waits != 0:
		return b.finish(c.waits)
	case c.launch != nil:
		return device.Launch(0, *c.launch)
	case c.pattern != nil:
		return device.Fill(0, c.dst, c.pattern, c.count)
	}
	return device.Copy(0, c.dst, c.src, c.size)
}
