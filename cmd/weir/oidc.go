package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/api/oidc"
)

// oidcFlags say whose tokens are believed besides those that weir token create makes.
type oidcFlags struct {
	issuer, audience, role, tenant string
}

func (f *oidcFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.issuer, "oidc-issuer", "", "`URL` of an OpenID Connect issuer whose tokens are believed, too; it implies --tokens (default none)")
	flags.StringVar(&f.audience, "oidc-audience", "", "`NAME` that the tokens of --oidc-issuer must have in aud")
	flags.StringVar(&f.role, "oidc-role-claim", oidc.DefaultRoleClaim, "`CLAIM` of those tokens with the role: read, operate, work or admin")
	flags.StringVar(&f.tenant, "oidc-tenant-claim", oidc.DefaultTenantClaim, "`CLAIM` of those tokens with the namespace")
}

// check refuses flags that mean nothing by themselves.
func (f *oidcFlags) check() error {
	switch {
	case f.issuer != "" && f.audience == "":
		return usageError{errors.New("--oidc-issuer needs --oidc-audience: without it tokens for other services of the issuer would be good here")}
	case f.issuer == "" && (f.audience != "" || f.role != oidc.DefaultRoleClaim || f.tenant != oidc.DefaultTenantClaim):
		return usageError{errors.New("--oidc-audience, --oidc-role-claim and --oidc-tenant-claim need --oidc-issuer: the URL of who makes the tokens")}
	case f.issuer == "":
		return nil
	}
	_, err := f.verifier() // before an address is taken and a Redis asked
	return err
}

// verifier returns what checks the tokens of the issuer, which it has not asked for anything yet.
func (f *oidcFlags) verifier() (*oidc.Verifier, error) {
	v, err := oidc.New(oidc.Config{Issuer: f.issuer, Audience: f.audience, RoleClaim: f.role, TenantClaim: f.tenant})
	if err != nil {
		return nil, usageError{fmt.Errorf("--oidc-issuer: %w", err)}
	}
	return v, nil
}

// into lets a server believe the issuer. One that does not answer yet is told of, and asked again when somebody comes with a token.
func (f *oidcFlags) into(c *cobra.Command, cfg *api.Config) error {
	if f.issuer == "" {
		return nil
	}
	v, err := f.verifier()
	if err != nil {
		return err
	}
	if err := v.Fetch(context.WithoutCancel(c.Context())); err != nil {
		_, err = fmt.Fprintf(c.ErrOrStderr(), "weir: %v; its tokens are answered with 503 until it does\n", err)
		if err != nil {
			return err
		}
	}
	cfg.Verify = v.Verify
	return nil
}
