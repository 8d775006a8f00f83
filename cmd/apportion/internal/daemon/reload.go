package daemon

import (
	"context"
	"errors"
	"strings"

	"github.com/apportion/apportion/cmd/apportion/internal/config"
)

// files lists the watched files: the configuration, the files that it names, and those of TLS.
func (d *Daemon) files() []string {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	var files []string
	if d.settings.File != "" {
		files = append(files, d.settings.File)
	}
	for _, source := range d.settings.Policies {
		if kind, name := config.KindOf(source); kind != config.PresetPolicy {
			files = append(files, name)
		}
	}
	if users := d.settings.Extender.Users; users != "" {
		files = append(files, users)
	}
	for _, name := range []string{d.settings.TLS.Certificate, d.settings.TLS.Key, d.settings.TLS.ClientCA} {
		if name != "" {
			files = append(files, name)
		}
	}
	return files
}

// Reload reads the files again, and applies the settings that may change while the server runs.
func (d *Daemon) Reload(ctx context.Context) {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	d.reloadTLS(ctx)
	if err := d.reloadConfig(ctx); err != nil {
		d.metrics.configFailed()
		d.log.ErrorContext(ctx, "keeping the configuration: the new one is faulty", "error", err.Error())
		return
	}
	d.metrics.configTaken()
}

func (d *Daemon) reloadTLS(ctx context.Context) {
	if d.authority == nil {
		return
	}
	changed, err := d.authority.Reload()
	switch {
	case err != nil:
		d.metrics.tlsErrors.Inc()
		d.log.ErrorContext(ctx, "keeping the TLS files: the new ones are faulty", "error", err.Error())
	case changed:
		d.gate.Review()
		d.metrics.tlsReloads.Inc()
		d.log.InfoContext(ctx, "the TLS files were applied", "not_after", d.authority.NotAfter())
	}
}

var errOpened = errors.New("identities: the list became empty, which would admit every client and requires a restart")

// reloadConfig applies policies and identities, both or none.
func (d *Daemon) reloadConfig(ctx context.Context) error {
	next, err := config.Read(d.options.Sources)
	if err != nil {
		return err
	}
	loaded, err := load(&next.Config)
	if err != nil {
		return err
	}
	if len(d.settings.Identities) > 0 && len(next.Identities) == 0 {
		return errOpened
	}
	d.addFollowed(loaded.policies)
	// Both were checked before, so neither fails after the other was applied.
	if err := d.server.SetPolicies(loaded.policies); err != nil {
		return err
	}
	if err := d.gate.Admit(loaded.identities); err != nil {
		return err
	}
	d.policies.Store(&loaded.policies)
	if err := d.observing.use(&d.settings.Config, loaded); err != nil {
		return err
	}
	d.extender.admit(loaded.users)
	loaded.warn(ctx, d.log)
	var left []string
	for _, s := range config.Changed(&d.settings.Config, &next.Config) {
		if !s.Live {
			left = append(left, s.Path)
		}
	}
	if len(left) > 0 {
		d.log.WarnContext(ctx, "changed settings take effect only after a restart", "settings", strings.Join(left, ", "))
	}
	d.log.InfoContext(ctx, "the configuration was applied", "policies", len(loaded.policies), "identities", len(loaded.identities))
	d.settings.Policies, d.settings.Identities = next.Policies, next.Identities
	return nil
}
