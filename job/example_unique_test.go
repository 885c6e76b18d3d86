package job_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
)

// Whoever asks for the same work while it is not done gets the job that is there.
func ExampleUnique() {
	ctx := context.Background()
	store, err := redisstore.Open(ctx, redisstore.Config{Embedded: embedded.Start})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	client := client.New(store)
	start := func(of int, by job.UniqueBy) {
		h, err := client.Start(ctx, job.Single(&Square{Of: of}, ""), job.Unique(by))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(of, "created:", h.Created())
	}
	start(3, job.UniqueBy{}) // by its type and args
	start(3, job.UniqueBy{})
	start(4, job.UniqueBy{})
	start(5, job.UniqueBy{Key: "customer 7", For: time.Hour}) // at most one an hour
	start(6, job.UniqueBy{Key: "customer 7", For: time.Hour})
	// Output:
	// 3 created: true
	// 3 created: false
	// 4 created: true
	// 5 created: true
	// 6 created: false
}

// The key of a job by its args may be computed by others, too: it is the SHA-1 of {"args":{"a":1,"b":[]},"type":"Resize"}.
func ExampleUniqueKey() {
	fmt.Println(job.UniqueKey("Resize", map[string]any{"b": []int{}, "a": 1}))
	// Output: ab44eb083414359a0dc4341c42007c25a0772d4a <nil>
}
