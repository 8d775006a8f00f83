package fair

// one is the unit of gains and factors, and nanoseconds are those of a second.
const (
	one         = 1 << 16
	nanoseconds = 1_000_000_000
)

const (
	// MaxPower bounds Memory.Power.
	MaxPower = 4
	// MaxFactor bounds the factor of the weight of a queue without any usage.
	MaxFactor = 256
)

// Memory says how past usage counts.
type Memory struct {
	// Gain says how strongly, in units of 1/65536; not negative. The weight of a queue without usage is multiplied by
	// (1 + Gain/65536)^Power, which is at most MaxFactor.
	Gain int64
	// Power is from 1 to MaxPower.
	Power int
	// Prices charge one price for all dimensions together. nil: each dimension is charged by itself. No dimension is named twice.
	Prices []Price
	// Owners serves jobs of equal priority by the usage of their owners.
	Owners bool
	// NoSaving keeps no free room for blocks that can only start once enough tasks have ended.
	NoSaving bool
}

// Price is what the use of one quantum of a dimension for one second costs.
type Price struct {
	Dimension string
	Amount    int64
}

// DefaultMemory returns the settings that count if none are given.
func DefaultMemory() Memory { return Memory{Gain: 3 * one, Power: 2} }

// IsDefault reports whether the settings are the default ones.
func (m *Memory) IsDefault() bool {
	d := DefaultMemory()
	return m.Gain == d.Gain && m.Power == d.Power && m.Prices == nil && !m.Owners && !m.NoSaving
}

// Bounded reports whether the factor of a queue without usage is at most MaxFactor.
func (m *Memory) Bounded() bool {
	if m.Gain > MaxFactor*one {
		return false
	}
	factor, most := wideOf(1), wideOf(MaxFactor)
	for range m.Power {
		factor, most = factor.times(one+m.Gain), most.times(one)
	}
	return factor.compare(most) <= 0
}
