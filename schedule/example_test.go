package schedule_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/weirworks/weir/schedule"
)

func Example() {
	now := time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC)
	s, err := schedule.Parse(schedule.Cron, "30 2 * * *", "Europe/Berlin", now)
	if err != nil {
		panic(err)
	}
	fmt.Println(s.Understood())
	n := 0
	for t := range s.Upcoming(schedule.Moments{Now: now}) {
		fmt.Println(t) // on the 29th there is no 02:30
		if n++; n == 3 {
			break
		}
	}
	// Output:
	// at 02:30, in Europe/Berlin
	// 2026-03-28 02:30:00 +0100 CET
	// 2026-03-29 03:00:00 +0200 CEST
	// 2026-03-30 02:30:00 +0200 CEST
}

func ExampleParse() {
	now := time.Date(2026, 3, 10, 13, 45, 30, 0, time.UTC)
	_, err := schedule.Parse(schedule.Cron, "0 0 30 2 *", "", now)
	fmt.Println(err)
	_, err = schedule.Parse(schedule.Natural, "every mondy at 9am", "", now)
	fmt.Println(err)
	// Output:
	// cron "0 0 30 2 *": day of month: day 30 never comes in February
	// natural "every mondy at 9am": word 2: "mondy" is not understood: use a weekday, weekday, weekend, day, week, month, or a number and a unit, such as every 2 hours
}

func ExampleSchedule_Next() {
	clock := func(h, m int) time.Time { return time.Date(2026, 3, 10, h, m, 0, 0, time.UTC) }
	run := schedule.Moments{Scheduled: clock(13, 0), Started: clock(13, 15), Finished: clock(13, 45), Now: clock(13, 45)}
	for _, text := range []string{"SCHEDULED, +1 HOUR", "STARTED, +1 HOUR", "FINISHED, +1 HOUR"} {
		s, err := schedule.Parse(schedule.Repeat, text, "", run.Now)
		if err != nil {
			panic(err)
		}
		next, _ := s.Next(run)
		fmt.Println(next.Format("15:04"), text)
	}
	// Output:
	// 14:00 SCHEDULED, +1 HOUR
	// 14:15 STARTED, +1 HOUR
	// 14:45 FINISHED, +1 HOUR
}

func ExampleSchedule_MarshalJSON() {
	now := time.Date(2026, 3, 10, 13, 45, 30, 0, time.UTC)
	s, err := schedule.Parse(schedule.Natural, "every weekday at 9am", "Europe/Berlin", now)
	if err != nil {
		panic(err)
	}
	raw, _ := json.Marshal(s)
	fmt.Println(string(raw))
	var back schedule.Schedule
	err = json.Unmarshal(raw, &back)
	fmt.Println(back, err)
	// Output:
	// {"schedule":"natural:every weekday at 9am","zone":"Europe/Berlin","resolved":"cron:0 0 9 * * 1-5"}
	// natural:every weekday at 9am <nil>
}

func ExampleDetect() {
	for _, text := range []string{"30 9 * * MON-FRI", "1h30m", "every weekday at 9am", "cron7:* * * 3/2 12 0 0"} {
		kind, rest := schedule.Detect(text)
		fmt.Println(kind, "|", rest)
	}
	// Output:
	// cron | 30 9 * * MON-FRI
	// every | 1h30m
	// natural | every weekday at 9am
	// cron7 | * * * 3/2 12 0 0
}
