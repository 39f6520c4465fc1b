package runtime

import "time"

// SetGrace sets how long members may take when one has failed.
func (r *Ranks) SetGrace(d time.Duration) { r.grace = d }
