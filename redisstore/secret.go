package redisstore

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/job"
)

// secretField is that of a job's hash which holds its secret, in base64.
const secretField = "secret"

// SetSecret keeps a secret with a job, instead of the one that it had: until the job is removed. What is known of a job otherwise does not
// have it.
func (s *Store) SetSecret(ctx context.Context, id job.ID, secret string) error {
	hidden, err := s.secrets.hide(s.secrets.place(job.KindSecret, id, ""), []byte(secret))
	if err != nil {
		return err
	}
	return s.act(ctx, scriptSecret, id, "", string(id), base64.RawStdEncoding.EncodeToString(hidden))
}

// Secret returns what SetSecret has kept; empty: nothing.
func (s *Store) Secret(ctx context.Context, id job.ID) (string, error) {
	text, err := s.rdb.HGet(ctx, s.keys.job(id, ""), secretField).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	if err != nil {
		return "", s.explain(err)
	}
	hidden, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return "", fmt.Errorf("the secret of job %s is damaged: set it again", id)
	}
	plain, err := s.secrets.show(s.secrets.place(job.KindSecret, id, ""), hidden)
	return string(plain), err
}
