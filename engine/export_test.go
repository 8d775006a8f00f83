package engine

// MaxWarnings is the largest number of listed warnings.
const MaxWarnings = maxWarnings
