// Somebody who consents: the authorization URL is fetched and the code read out of its redirect, for targets that
// consent by themselves. The flow itself is the SDK's own: it is what is measured.

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// redirectURL is the registered redirect URL. Nothing listens there, because `follow` stops at the Location header.
const redirectURL = "http://localhost:33418/callback"

const followLimit = 30 * time.Second

// follows checks that this program supports the requested kind of consent.
func follows(asked *authorization) error {
	if asked.Consent != "" && asked.Consent != "follow" {
		return unsupported("consent by %s is not for this program", asked.Consent)
	}
	return nil
}

func clientName(asked *authorization) string {
	if asked.ClientName != "" {
		return asked.ClientName
	}
	return "mcpace"
}

// follow returns the query of the redirect to the client's callback address.
func follow(ctx context.Context, address string) (url.Values, error) {
	ctx, cancel := context.WithTimeout(ctx, followLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	browser := &http.Client{
		// Scripted targets are on this machine, so a proxy from the environment must not be used.
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	reply, err := browser.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	place, err := reply.Location()
	if err != nil {
		return nil, refused(fmt.Sprintf("the authorization server answered %d instead of a redirect", reply.StatusCode))
	}
	if !strings.HasPrefix(place.String(), redirectURL) {
		return nil, refused("the authorization server didn't redirect to the client's callback address")
	}
	answer := place.Query()
	if answer.Get("code") == "" {
		return nil, refused("authorization was refused: " + answer.Get("error"))
	}
	return answer, nil
}

func refused(why string) error { return &problem{"auth", why} }
