// The shop behind three of the tools: a product API over HTTP, and Redis. One pooled client for each.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/redis/go-redis/v9"
)

// patience is longer than the longest reply time in any load.
const patience = 30 * time.Second

type shop struct {
	api   string
	http  *http.Client
	redis *redis.Client
}

type (
	searchArguments struct {
		Query string `json:"query"`
		Limit *int   `json:"limit,omitempty"`
	}
	cartArguments struct {
		UserID int64 `json:"user_id"`
	}
	checkoutArguments struct {
		UserID int64   `json:"user_id"`
		Items  []order `json:"items"`
	}
	order struct {
		ProductID int64 `json:"product_id"`
		Quantity  int64 `json:"quantity"`
	}
	cart struct {
		User  user    `json:"user"`
		Items []order `json:"items"`
		Count int     `json:"count"`
	}
	user struct {
		ID   int64  `json:"id"`
		Name string `json:"name"`
		Tier string `json:"tier"`
	}
	receipt struct {
		Order      int64 `json:"order"`
		TotalCents int64 `json:"total_cents"`
		Items      int   `json:"items"`
	}
)

// fromEnvironment returns no shop where the environment names none.
func fromEnvironment() (*shop, error) {
	api, address := os.Getenv("SHOP_API"), os.Getenv("SHOP_REDIS")
	if api == "" || address == "" {
		return nil, nil
	}
	settings, err := redis.ParseURL(address)
	if err != nil {
		return nil, fmt.Errorf("SHOP_REDIS %s: %w", address, err)
	}
	settings.ReadTimeout, settings.WriteTimeout, settings.PoolTimeout = patience, patience, patience
	// The default transport keeps only two connections to a host, which is too few under load.
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = transport.MaxIdleConns
	transport.Proxy = nil
	client := &http.Client{Transport: transport, Timeout: patience}
	return &shop{strings.TrimRight(api, "/"), client, redis.NewClient(settings)}, nil
}

func addShop(server *mcp.Server, there *shop) {
	add(server, "search_products", "Searches the shop's products", there.search)
	add(server, "get_user_cart", "Tells a user and what lies in the cart", there.cart)
	add(server, "checkout", "Orders items", there.checkout)
}

func (s *shop) search(ctx context.Context, given searchArguments) (string, error) {
	limit := 10
	if given.Limit != nil {
		limit = *given.Limit
	}
	query := url.Values{"q": {given.Query}, "limit": {strconv.Itoa(limit)}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.api+"/products?"+query.Encode(), nil)
	if err != nil {
		return "", err
	}
	body, err := s.ask(request)
	return string(body), err
}

func (s *shop) cart(ctx context.Context, given cartArguments) (string, error) {
	pipe := s.redis.Pipeline()
	about := pipe.HGetAll(ctx, fmt.Sprintf("user:%d", given.UserID))
	elements := pipe.LRange(ctx, fmt.Sprintf("cart:%d", given.UserID), 0, -1)
	if _, err := pipe.Exec(ctx); err != nil {
		return "", fmt.Errorf("Redis: %w", err)
	}
	if len(about.Val()) == 0 {
		return "", fmt.Errorf("no user %d", given.UserID)
	}
	items := []order{}
	for _, element := range elements.Val() {
		product, quantity, _ := strings.Cut(element, ":")
		item, err := parseOrder(product, quantity)
		if err != nil {
			return "", err
		}
		items = append(items, item)
	}
	owner := user{given.UserID, about.Val()["name"], about.Val()["tier"]}
	return compact(cart{owner, items, len(items)})
}

func parseOrder(product, quantity string) (order, error) {
	id, err := strconv.ParseInt(product, 10, 64)
	if err != nil {
		return order{}, fmt.Errorf("a cart has the product %q", product)
	}
	count, err := strconv.ParseInt(quantity, 10, 64)
	if err != nil {
		return order{}, fmt.Errorf("a cart has the quantity %q", quantity)
	}
	return order{id, count}, nil
}

func (s *shop) checkout(ctx context.Context, given checkoutArguments) (string, error) {
	wanted, err := json.Marshal(map[string]any{"items": given.Items})
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.api+"/price", bytes.NewReader(wanted))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	body, err := s.ask(request)
	if err != nil {
		return "", err
	}
	var price struct {
		TotalCents int64 `json:"total_cents"`
	}
	if err := json.Unmarshal(body, &price); err != nil {
		return "", fmt.Errorf("the product API: %w", err)
	}
	history := fmt.Sprintf("history:%d", given.UserID)
	pipe := s.redis.Pipeline()
	number := pipe.Incr(ctx, fmt.Sprintf("orders:%d", given.UserID))
	pipe.HIncrBy(ctx, fmt.Sprintf("user:%d", given.UserID), "spent", price.TotalCents)
	pipe.LPush(ctx, history, price.TotalCents)
	pipe.LTrim(ctx, history, 0, 9)
	if _, err := pipe.Exec(ctx); err != nil {
		return "", fmt.Errorf("Redis: %w", err)
	}
	return compact(receipt{number.Val(), price.TotalCents, len(given.Items)})
}

// ask reads the whole body, so that the connection can be reused.
func (s *shop) ask(request *http.Request) ([]byte, error) {
	response, err := s.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("the product API: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("the product API: %w", err)
	}
	if response.StatusCode/100 != 2 {
		return nil, fmt.Errorf("the product API answered %d", response.StatusCode)
	}
	return body, nil
}

// compact is JSON without escaping of < > &, as the other languages write it.
func compact(value any) (string, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "", err
	}
	return strings.TrimSuffix(text.String(), "\n"), nil
}
