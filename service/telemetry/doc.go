// Package telemetry provides metrics, traces and logs for operators, and the admin handler. Unless OpenTelemetry's standard environment
// (OTEL_TRACES_EXPORTER, OTEL_EXPORTER_OTLP_ENDPOINT …) is set, nothing leaves the process except what Prometheus scrapes.
//
//	t, err := telemetry.Start(ctx, telemetry.Options{Version: version, Logger: log})
//	defer t.Stop(ctx)
//	server, err := service.New(service.Options{Registry: t.Registry, Meter: t.Meter, Tracer: t.Tracer})
//	http.Serve(listener, t.Admin(telemetry.AdminOptions{Ready: server.Ready}))
package telemetry
