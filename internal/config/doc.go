// Package config is the configuration of a liveroom server: one table of settings that is at once the YAML file's
// keys, the flags, the environment, the help text and the README's table.
//
// The one idea: a setting is a row of that table and exists nowhere else. [Load] lays defaults, file, environment and
// flags over one another in this order, decodes each row and returns every fault at once, each with its path, what is
// allowed and what was received. A key that is in no row is a fault too, wherever it was written.
//
// Concurrency: everything here runs once, at start; a [Config] is a plain value that its owner does not change.
//
// What it does not do: it opens no port and no file but the configuration file, and it does not look at the rules of
// limits.file or at certificates. Who uses those reads them.
package config
