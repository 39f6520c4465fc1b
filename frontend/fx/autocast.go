package fx

import (
	"strings"

	"weft/ir"
)

// autocast is a region in which operands of some operators are converted: products to a
// narrow type, operators that lose too much to float32.
type autocast struct {
	device  string
	to      ir.DType
	enabled bool
	decided bool
	current ir.DType // what the operator being lowered wants, InvalidDType: its operands as they are
}

// begin notes what the operator of a call wants.
func (a *autocast) begin(c *call, op string) {
	name, _, _ := strings.Cut(strings.TrimPrefix(op, "aten."), ".")
	a.current = ir.InvalidDType
	switch {
	case narrowOperators[name]:
		a.current = a.to
	case wideOperators[a.device][name]:
		a.current = ir.F32
	}
}

// convert brings a float operand to the type that the operator wants; float64 stays.
func (a *autocast) convert(b *ir.Builder, v ir.Value) ir.Value {
	t := b.DType(v)
	if a.current == ir.InvalidDType || !t.IsFloat() || t == ir.F64 {
		return v
	}
	return b.Convert(v, a.current)
}

// narrowOperators run in the region's type.
var narrowOperators = words(`linear matmul mm bmm addmm baddbmm addbmm mv addmv einsum conv1d conv2d conv3d convolution
	conv_transpose1d conv_transpose2d conv_transpose3d scaled_dot_product_attention prelu linalg_multi_dot chain_matmul`)

// wideOperators run in float32, by device.
var wideOperators = map[string]map[string]bool{
	"cuda": words(`acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow softplus layer_norm
		native_layer_norm group_norm norm cosine_similarity poisson_nll_loss cosine_embedding_loss nll_loss hinge_embedding_loss
		kl_div l1_loss smooth_l1_loss huber_loss mse_loss margin_ranking_loss multilabel_margin_loss soft_margin_loss
		triplet_margin_loss multi_margin_loss binary_cross_entropy_with_logits dist pdist cdist renorm logsumexp softmax
		log_softmax prod cumprod cumsum sum rms_norm`),
	"cpu": words(`avg_pool3d binary_cross_entropy grid_sampler grid_sample cdist kl_div mse_loss nll_loss cosine_embedding_loss
		upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_linear1d upsample_bilinear2d upsample_trilinear3d
		upsample_bicubic2d nan_to_num quantile smooth_l1_loss huber_loss l1_loss soft_margin_loss binary_cross_entropy_with_logits
		cross_entropy_loss prod norm`),
}

func words(list string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		set[w] = true
	}
	return set
}
