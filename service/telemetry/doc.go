// Package telemetry tells operators what the server does: metrics, traces, logs, and the address where they look at all that. Without a
// word from OpenTelemetry's standard environment (OTEL_TRACES_EXPORTER, OTEL_EXPORTER_OTLP_ENDPOINT …) nothing leaves the process but
// what Prometheus fetches.
//
//	t, err := telemetry.Start(ctx, telemetry.Options{Version: version, Logger: log})
//	defer t.Stop(ctx)
//	server, err := service.New(service.Options{Registry: t.Registry, Meter: t.Meter, Tracer: t.Tracer})
//	http.Serve(listener, t.Admin(telemetry.AdminOptions{Ready: server.Ready}))
package telemetry
