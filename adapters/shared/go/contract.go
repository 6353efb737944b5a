// The process contract of ../../README.md, for client programs in Go.
//
// This file holds the contract only; a program's own driver drives its SDK. Nothing is imported but the standard
// library, so that a release is built with the dependencies that it asks for and no others.

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"os/signal"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

const (
	defaultLimit = 60 * time.Second
	// Time limit for closing a connection without a command that has a limit of its own.
	abandonLimit = 2 * time.Second
	messageLimit = 2000
	textLimit    = 200
	namesLimit   = 200
)

// command is a line on stdin.
type command struct {
	Cmd       string            `json:"cmd"`
	URL       string            `json:"url"`
	Command   []string          `json:"command"`
	Env       map[string]string `json:"env"`
	Auth      authorization     `json:"auth"`
	Mode      string            `json:"mode"`
	Name      string            `json:"name"`
	Arguments map[string]any    `json:"arguments"`
	TimeoutS  float64           `json:"timeout_s"`
}

type authorization struct {
	Kind       string `json:"kind"`
	Token      string `json:"token"`
	Consent    string `json:"consent"`
	Scope      string `json:"scope"`
	ClientName string `json:"client_name"`
	Fresh      bool   `json:"fresh"`
}

// driver is an SDK. Each operation stamps `now()` immediately before and after the SDK's calls.
type driver interface {
	module() string
	provider(ctx context.Context, asked *command) outcome
	// connect gets a context that lives as long as the connection, because SDKs keep it. Afterwards the outcome's `keep`
	// or `drop` is called, depending on whether the connection was established in time.
	connect(ctx context.Context, asked *command) outcome
	listTools(ctx context.Context) outcome
	callTool(ctx context.Context, asked *command) outcome
	disconnect(ctx context.Context) outcome
	connected() bool
}

// outcome is the result of an operation. Its stamps are 0 where nothing was started.
type outcome struct {
	start, end int64
	result     any
	err        error
	// For a new connection: keep stores a connection that was established in time, drop closes one that came too late.
	keep, drop func()
}

type serverSummary struct {
	ProtocolVersion string `json:"protocol_version"`
	ServerName      string `json:"server_name"`
	ServerVersion   string `json:"server_version"`
}

type toolsSummary struct {
	Tools int      `json:"tools"`
	Names []string `json:"names"`
	More  bool     `json:"more"`
}

type callSummary struct {
	IsError bool   `json:"is_error"`
	Text    string `json:"text"`
}

// program executes commands, one after another.
type program struct {
	driver driver
	// cancel cancels the context of the connection.
	cancel context.CancelFunc
}

// run serves commands until `close`, the end of stdin, or SIGTERM.
func run(sdk string, made driver) {
	answers := claimStdout()
	served := &program{driver: made, cancel: func() {}}
	var leaving sync.Once
	leave := func() {
		leaving.Do(func() {
			if made.connected() {
				within(abandonLimit, served.cancel, made.disconnect)
			}
			os.Exit(0)
		})
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	go func() {
		<-terminated
		leave()
	}()
	answer(answers, map[string]any{"ready": true, "sdk": sdk, "version": version(made.module()), "pid": os.Getpid()})
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if len(strings.TrimSpace(string(line))) > 0 {
			var asked command
			if wrong := json.Unmarshal(line, &asked); wrong != nil {
				tell(answers, "", outcome{err: &problem{"protocol", "this line is no command: " + wrong.Error()}})
			} else if asked.Cmd == "close" {
				break
			} else {
				tell(answers, asked.Cmd, served.perform(&asked))
			}
		}
		if err != nil {
			break
		}
	}
	leave()
}

// perform runs one command. Every failure becomes an answer, so the next command can still run.
func (p *program) perform(asked *command) outcome {
	limit := defaultLimit
	if asked.TimeoutS > 0 {
		limit = time.Duration(asked.TimeoutS * float64(time.Second))
	}
	known := map[string]func(context.Context) outcome{
		"provider":   func(ctx context.Context) outcome { return p.driver.provider(ctx, asked) },
		"list_tools": p.driver.listTools,
		"call_tool":  func(ctx context.Context) outcome { return p.driver.callTool(ctx, asked) },
		"disconnect": p.driver.disconnect,
	}
	switch operation, there := known[asked.Cmd]; {
	case asked.Cmd == "connect" && p.driver.connected():
		return outcome{err: &problem{"protocol", "already connected: disconnect first"}}
	case asked.Cmd == "connect":
		return p.connect(limit, asked)
	case !there:
		return outcome{err: &problem{"protocol", fmt.Sprintf("unknown command %q", asked.Cmd)}}
	case asked.Cmd != "provider" && !p.driver.connected():
		return outcome{err: &problem{"protocol", "not connected: connect first"}}
	case asked.Cmd == "disconnect":
		return within(limit, p.cancel, operation)
	default:
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		return within(limit, cancel, func(context.Context) outcome { return operation(ctx) })
	}
}

func (p *program) connect(limit time.Duration, asked *command) outcome {
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	done := within(limit, cancel, func(context.Context) outcome { return p.driver.connect(ctx, asked) })
	if done.err != nil {
		cancel()
	} else if done.keep != nil {
		done.keep()
	}
	return done
}

// within runs an operation and calls `cancel` at its limit. An operation that ignores the cancellation is abandoned.
func within(limit time.Duration, cancel context.CancelFunc, operation func(context.Context) outcome) outcome {
	began := now()
	finished := make(chan outcome, 1)
	go func() { finished <- operation(context.Background()) }()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case done := <-finished:
		return done
	case <-late.C:
		ended := now()
		cancel()
		go func() {
			if done := <-finished; done.drop != nil {
				done.drop()
			}
		}()
		return outcome{start: began, end: ended, err: &problem{"timeout", fmt.Sprintf("nothing after %s", limit)}}
	}
}

// problem is an error whose kind is known.
type problem struct{ kind, message string }

func (p *problem) Error() string { return p.message }

// unsupported is the error of a release that has no API for the request.
func unsupported(format string, words ...any) error {
	return &problem{"unsupported", fmt.Sprintf(format, words...)}
}

// failed is the outcome of an operation that has just ended in an error.
func failed(start int64, err error) outcome { return outcome{start: start, end: now(), err: err} }

// ended is the outcome of an operation that has ended. It calls `summary` only now, after the clock has stopped.
func ended(start, end int64, err error, summary func() any) outcome {
	if err != nil {
		return outcome{start: start, end: end, err: err}
	}
	return outcome{start: start, end: end, result: summary()}
}

// nothing is the result of an operation without a summary.
func nothing() any { return nil }

func listed[T any](tools []T, name func(T) string, more bool) any {
	names := []string{}
	for _, tool := range tools[:min(len(tools), namesLimit)] {
		names = append(names, name(tool))
	}
	return toolsSummary{len(tools), names, more}
}

// called summarizes a result; `text` returns the text of a block, where it has any.
func called[B any](isError bool, content []B, text func(B) (string, bool)) any {
	texts := []string{}
	for _, block := range content {
		if said, ok := text(block); ok {
			texts = append(texts, said)
		}
	}
	return callSummary{isError, cut(strings.Join(texts, "\n"), textLimit)}
}

// status401 finds the status 401, not as a port or as part of another number.
var status401 = regexp.MustCompile(`(^|[^\w:.])401\b`)

func kindOf(err error) string {
	var known *problem
	text := strings.ToLower(err.Error())
	switch {
	case errors.As(err, &known):
		return known.kind
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET):
		return "connection"
	case strings.Contains(text, "unauthorized"), strings.Contains(text, "oauth"), status401.MatchString(text):
		return "auth"
	case errors.Is(err, io.EOF), strings.Contains(text, "connection"), strings.Contains(text, "executable file not found"):
		return "connection"
	default:
		return "protocol"
	}
}

func tell(answers io.Writer, name string, done outcome) {
	said := map[string]any{"op": name, "ok": done.err == nil, "start_ns": nil, "end_ns": nil}
	if done.start != 0 {
		said["start_ns"], said["end_ns"] = done.start, done.end
	}
	switch {
	case done.err != nil:
		message, _, _ := strings.Cut(done.err.Error(), "\n")
		said["error"] = map[string]string{"kind": kindOf(done.err), "message": cut(message, messageLimit)}
	case done.result != nil:
		said["result"] = done.result
	default:
		said["result"] = struct{}{}
	}
	answer(answers, said)
}

func answer(answers io.Writer, said any) {
	if err := json.NewEncoder(answers).Encode(said); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// claimStdout keeps stdout for answers; whatever a library prints goes to stderr instead, and what it logs nowhere.
func claimStdout() io.Writer {
	answers := os.Stdout
	os.Stdout = os.Stderr
	log.SetOutput(io.Discard)
	return answers
}

func cut(text string, limit int) string {
	runes := []rune(text)
	return string(runes[:min(len(runes), limit)])
}

// version is the release of a module that was linked into the program.
func version(module string) string {
	if built, ok := debug.ReadBuildInfo(); ok {
		for _, linked := range built.Deps {
			if linked.Path == module {
				return strings.TrimPrefix(linked.Version, "v")
			}
		}
	}
	return "unknown"
}

// begun and begunNs are one moment on Go's clock and on CLOCK_MONOTONIC.
var begun, begunNs = oneMoment()

// oneMoment reads both clocks until nothing came between: a program that is put aside between the two reads would have
// all its stamps shifted by as long.
func oneMoment() (time.Time, int64) {
	var at time.Time
	var atNs int64
	closest := int64(math.MaxInt64)
	for range 64 {
		before := monotonic()
		between := time.Now()
		after := monotonic()
		if after-before < closest {
			closest, at, atNs = after-before, between, before+(after-before)/2
		}
	}
	return at, atNs
}

// now is CLOCK_MONOTONIC in nanoseconds: time.Since is by the same clock, and costs no system call.
func now() int64 { return begunNs + int64(time.Since(begun)) }

func monotonic() int64 {
	var stamp syscall.Timespec
	const clockMonotonic = 1
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&stamp)), 0)
	return stamp.Nano()
}
