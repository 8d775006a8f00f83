package objects

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/apportion/apportion/internal/quantity"
)

// Quantity reads a quantity as Kubernetes does, of any size that a real one has.
func Quantity(text string) (resource.Quantity, error) {
	if err := quantity.Check(text); err != nil {
		return resource.Quantity{}, err //nolint:wrapcheck // It is said as a fault of the field.
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return resource.Quantity{}, fmt.Errorf("not a quantity: %q", text)
	}
	return q, nil
}
