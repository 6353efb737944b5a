package main

import (
	"context"
	"reflect"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// wallet has the SDK's OAuth handlers, which keep their tokens: one for each server, unless `fresh` is set.
type wallet struct {
	handlers map[string]*auth.AuthorizationCodeHandler
}

func (w *wallet) provider(asked *command) outcome {
	if err := follows(&asked.Auth); err != nil {
		return outcome{err: err}
	}
	config := configuration(&asked.Auth)
	start := now()
	handler, err := auth.NewAuthorizationCodeHandler(config)
	if err != nil {
		return failed(start, err)
	}
	end := now()
	if _, kept := w.handlers[asked.URL]; !kept || asked.Auth.Fresh {
		w.keep(asked.URL, handler)
	}
	return outcome{start: start, end: end}
}

func (w *wallet) authorize(transport *mcp.StreamableClientTransport, asked *command) error {
	if _, kept := w.handlers[asked.URL]; !kept {
		if done := w.provider(asked); done.err != nil {
			return done.err
		}
	}
	transport.OAuthHandler = w.handlers[asked.URL]
	return nil
}

func (w *wallet) keep(url string, handler *auth.AuthorizationCodeHandler) {
	if w.handlers == nil {
		w.handlers = map[string]*auth.AuthorizationCodeHandler{}
	}
	w.handlers[url] = handler
}

func configuration(asked *authorization) *auth.AuthorizationCodeHandlerConfig {
	return &auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{
			Metadata: &oauthex.ClientRegistrationMetadata{
				RedirectURIs:            []string{redirectURL},
				TokenEndpointAuthMethod: "none",
				GrantTypes:              []string{"authorization_code", "refresh_token"},
				ResponseTypes:           []string{"code"},
				ClientName:              clientName(asked),
				Scope:                   strings.TrimSpace(asked.Scope),
			},
		},
		RedirectURL: redirectURL,
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			answer, err := follow(ctx, args.URL)
			if err != nil {
				return nil, err
			}
			result := &auth.AuthorizationResult{Code: answer.Get("code"), State: answer.Get("state")}
			// Since 1.7.
			if issuer := reflect.ValueOf(result).Elem().FieldByName("Iss"); issuer.IsValid() {
				issuer.SetString(answer.Get("iss"))
			}
			return result, nil
		},
	}
}
