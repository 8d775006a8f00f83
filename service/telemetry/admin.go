package telemetry

import (
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/apportion/apportion/engine"
)

// AdminOptions of an Admin handler.
type AdminOptions struct {
	// Ready reports whether the server accepts calls. nil: always.
	Ready func() bool
	// Profiling serves Go's profiles.
	Profiling bool
}

// Admin serves operators, without authentication: /metrics, /healthz (the process is alive), /readyz (it accepts calls), /version, and, if
// enabled, /debug/pprof/.
func (t *Telemetry) Admin(o AdminOptions) http.Handler {
	const scrapes, patience = 4, 30 * time.Second
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(t.Gatherer, promhttp.HandlerOpts{
		EnableOpenMetrics: true, MaxRequestsInFlight: scrapes, Timeout: patience,
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if o.Ready != nil && !o.Ready() {
			say(w, http.StatusServiceUnavailable, "not serving")
			return
		}
		say(w, http.StatusOK, "ok")
	})
	mux.HandleFunc("GET /version", t.serveVersion)
	if o.Profiling {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux
}

func say(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	// Who has gone does not hear.
	_, _ = w.Write([]byte(text + "\n"))
}

// serveVersion serves the versions from which the program was built.
func (t *Telemetry) serveVersion(w http.ResponseWriter, _ *http.Request) {
	about := struct {
		Version  string            `json:"version"`
		Engine   string            `json:"engine"`
		Go       string            `json:"go"`
		Platform string            `json:"platform"`
		Modules  map[string]string `json:"modules,omitempty"`
	}{Version: t.version, Engine: engine.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if build, ok := debug.ReadBuildInfo(); ok {
		about.Modules = make(map[string]string, len(build.Deps))
		for _, m := range build.Deps {
			about.Modules[m.Path] = m.Version
		}
	}
	data, err := json.Marshal(about)
	if err != nil {
		http.Error(w, "the version is unknown", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// Who has gone does not hear.
	_, _ = w.Write(append(data, '\n'))
}
