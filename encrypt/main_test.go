package encrypt_test

import (
	"os"
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/weirworks/weir/internal/redistest"
)

func TestMain(m *testing.M) {
	logging.Disable() // of servers that tests kill
	os.Exit(redistest.Main(m))
}
