package schedule_test

import (
	"testing"

	"weft/passes/internal/passtest"
	"weft/passes/schedule"
)

func TestText(t *testing.T) { passtest.Run(t, schedule.Run, passtest.Schedules) }
