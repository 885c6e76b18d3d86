package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/trigger"
)

// signatures are the headers that have one.
var signatures = []string{"X-Hub-Signature-256", "Webhook-Signature"}

// unsigned is the answer to who has no token, whatever is wrong with the signature: it tells nothing of which triggers there are.
var unsigned = unauthorized("send a token that weir token create made, in the header Authorization: Bearer TOKEN, or sign the message as the trigger demands it")

// signer is who sends a signed message and no token: the operation has to look at the signature. There is none for other
// tenants than the server's own, as nothing that may be believed names them.
func (s *Server) signer(r *http.Request) (who Principal, ok bool) {
	if !s.cfg.Tokens || r.Header.Get("Authorization") != "" {
		return who, false
	}
	for _, name := range signatures {
		if r.Header.Get(name) != "" {
			return Principal{Name: "webhook", Role: redisstore.TokenOperate, Tenant: s.cfg.Store.Namespace(), id: "webhook", signs: true}, true
		}
	}
	return who, false
}

// webhookInput is a message for a webhook trigger.
type webhookInput struct {
	JobPath
	Key       string `header:"Idempotency-Key" maxLength:"128" doc:"a repeat within an hour does nothing"`
	Body      *json.RawMessage
	RawBody   []byte
	Hub       string `header:"X-Hub-Signature-256" doc:"of the scheme github"`
	ID        string `header:"Webhook-Id" doc:"of the scheme standard, as the next two"`
	Timestamp string `header:"Webhook-Timestamp"`
	Signature string `header:"Webhook-Signature"`
}

// header returns one of those that signatures are about.
func (in *webhookInput) header(name string) string {
	return map[string]string{"X-Hub-Signature-256": in.Hub, "Webhook-Id": in.ID, "Webhook-Timestamp": in.Timestamp, "Webhook-Signature": in.Signature}[name]
}

// webhookOperations are those on webhook triggers.
func (s *Server) webhookOperations() {
	add(s, operation{
		method: http.MethodPost, path: "/v1/triggers/{job}/send", id: "send-to-trigger", group: groupTriggers, role: operate, status: http.StatusNoContent, signed: true, summary: "Send a message to a webhook trigger",
		about: "The body is the message; without one it is null. A trigger that is no webhook refuses it with 422, one that is too large for the tree that it would launch with 413. " +
			"The tree is launched by a later run of the trigger: GET /v1/jobs?label=trigger=ID lists the trees of the trigger with that ID. " +
			"If its definition has `verify` the message is to be signed, and whoever signs it needs no token where the trigger is one of the server's own namespace: 401 to others. With the scheme standard a message whose Webhook-Id was seen within an hour does nothing.",
	}, sendToTrigger)
	add(s, operation{
		method: http.MethodPut, path: "/v1/triggers/{job}/secret", id: "set-trigger-secret", group: groupTriggers, role: operate, status: http.StatusNoContent, summary: "Change the secret that messages to a webhook trigger are signed with",
	}, func(ctx context.Context, s *session, in *struct {
		JobPath
		Body struct {
			Secret string `json:"secret" doc:"16 to 512 bytes; of the scheme standard also whsec_ and base64"`
		}
	},
	) (*nothing, error) {
		h, err := s.find(ctx, in.Job)
		if err == nil {
			err = trigger.SetSecret(ctx, s.store, h, in.Body.Secret)
		}
		return done(err)
	})
}

func sendToTrigger(ctx context.Context, s *session, in *webhookInput) (*nothing, error) {
	h, err := s.find(ctx, in.Job)
	if err == nil {
		err = s.verify(ctx, h, in)
	}
	if err != nil && s.principal.signs {
		return nil, hiding(err)
	}
	if err == nil {
		err = s.once(ctx, "send "+string(h.ID()), in.Key, given(in.Body), func() error {
			return trigger.SendOnce(s.acting(ctx), s.client, h, in.Key, called(in.Body))
		})
	}
	return done(err)
}

// called is the message of a webhook: null, if it was called without a body.
func called(body *json.RawMessage) json.RawMessage {
	if message := given(body); len(message) > 0 {
		return message
	}
	return json.RawMessage("null")
}

// verify refuses a message that is not signed as its trigger demands it. Who has no token is refused by a trigger that demands nothing.
func (s *session) verify(ctx context.Context, h *client.Handle, in *webhookInput) error {
	v, err := trigger.Verifies(ctx, h)
	if err != nil {
		return err
	}
	if v == nil {
		if s.principal.signs {
			return unsigned
		}
		return nil
	}
	secret, err := s.store.Secret(ctx, h.ID())
	if err != nil {
		return err
	}
	now, err := s.store.Now(ctx)
	if err != nil {
		return err
	}
	id, err := v.Check(secret, in.header, in.RawBody, now)
	if errors.Is(err, trigger.ErrSignature) {
		return unauthorized(err.Error())
	}
	if id != "" {
		sum := sha256.Sum256([]byte(id))
		in.Key = "webhook " + hex.EncodeToString(sum[:])
	}
	return err
}

// unverified refuses a trigger to which messages are to be signed, where signatures are not looked at.
func (s *session) unverified(ctx context.Context, h *client.Handle) error {
	v, err := trigger.Verifies(ctx, h)
	if err == nil && v != nil {
		err = unauthorized("this trigger takes signed messages alone: send them to POST /v1/triggers/" + string(h.ID()) + "/send")
	}
	return err
}

// hiding is what who has no token is told of an error.
func hiding(err error) error {
	if p := problemOf(err); p.Status >= http.StatusInternalServerError {
		return err
	}
	return unsigned
}
