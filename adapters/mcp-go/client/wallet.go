package main

import (
	"context"
	"strings"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
)

// wallet has the shared data of each server's clients: tokens, and the id of the registered client.
type wallet map[string]*client.OAuthConfig

// provider creates the SDK's OAuth handler. A client creates another one from the same configuration.
func (w wallet) provider(asked *command) outcome {
	config, err := w.configuration(asked)
	if err != nil {
		return outcome{err: err}
	}
	start := now()
	transport.NewOAuthHandler(config)
	return outcome{start: start, end: now()}
}

func (w wallet) configuration(asked *command) (client.OAuthConfig, error) {
	if err := follows(&asked.Auth); err != nil {
		return client.OAuthConfig{}, err
	}
	if _, kept := w[asked.URL]; !kept || asked.Auth.Fresh {
		w[asked.URL] = &client.OAuthConfig{
			RedirectURI: redirectURL,
			Scopes:      strings.Fields(asked.Auth.Scope),
			TokenStore:  client.NewMemoryTokenStore(),
			PKCEEnabled: true,
		}
	}
	return *w[asked.URL], nil
}

// authorize follows the SDK's example, with automatic consent.
func authorize(ctx context.Context, handler *transport.OAuthHandler, asked *authorization) error {
	verifier, err := client.GenerateCodeVerifier()
	if err != nil {
		return err
	}
	state, err := client.GenerateState()
	if err != nil {
		return err
	}
	if handler.GetClientID() == "" {
		if err := handler.RegisterClient(ctx, clientName(asked)); err != nil {
			return err
		}
	}
	address, err := handler.GetAuthorizationURL(ctx, state, client.GenerateCodeChallenge(verifier))
	if err != nil {
		return err
	}
	answer, err := follow(ctx, address)
	if err != nil {
		return err
	}
	return handler.ProcessAuthorizationResponse(ctx, answer.Get("code"), answer.Get("state"), verifier)
}
