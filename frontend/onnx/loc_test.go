package onnx

import "testing"

func TestLoc(t *testing.T) {
	const scopes = "['', 'm', 'm.h.0.ln_1', 'layer_norm']"
	for _, c := range []struct{ name, scopes, stack, want string }{
		{"", "", "", "Relu#7"},
		{"node", "", "", "node"},
		{"node", scopes, "", "node in m.h.0.ln_1"},
		{"node", "['', 'view']", "", "node"},
		{"node", "", `File "/home/me/checkout/model.py", line 3, in forward`, "node (model.py:3)"},
		{"node", "", "File \"model.py\", line 3, in forward\n  File \"<eval_with_key>.1\", line 9, in forward", "node (model.py:3)"},
		{"node", "", `File "C:\work\model.py", line 3, in forward`, "node (model.py:3)"},
		{"node", "", `File "../other/model.py", line 3, in forward`, "node (model.py:3)"},
		{"node", scopes, "File \"/opt/v/lib/python3.11/site-packages/transformers/models/gpt2/modeling_gpt2.py\", line 273, in forward\n" +
			"  File \"/opt/v/lib/python3.11/site-packages/torch/nn/modules/normalization.py\", line 229, in forward",
			"node in m.h.0.ln_1 (transformers/models/gpt2/modeling_gpt2.py:273)"},
	} {
		n := &nodeProto{name: c.name, opType: "Relu", index: 7, scopes: c.scopes, stack: c.stack}
		if got := n.loc(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
