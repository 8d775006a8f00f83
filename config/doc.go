// Package config holds the settings of the server: one struct, of which everything else is derived. A flag stands above an environment
// variable, that above the file, and that above the default; each of the four is read by walking the struct, and so are the JSON Schema
// and docs/configuration.md made. All faults are reported together, each with its file and line, variable or flag.
//
//	flags := config.AddFlags(command.Flags())
//	settings, err := config.Read(flags.Sources(os.Environ()))
package config
