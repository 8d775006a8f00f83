package method

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	apportionv1alpha1 "github.com/apportion/apportion/gen/apportion/v1alpha1"
)

// services are the services of the contract. No two of their calls have the same name.
var services = func() []protoreflect.ServiceDescriptor {
	var all []protoreflect.ServiceDescriptor
	for _, file := range []protoreflect.FileDescriptor{
		apportionv1.File_apportion_v1_service_proto, apportionv1alpha1.File_apportion_v1alpha1_service_proto,
	} {
		for i := range file.Services().Len() {
			all = append(all, file.Services().Get(i))
		}
	}
	return all
}()

// Services returns the services of the contract.
func Services() []protoreflect.ServiceDescriptor {
	return append([]protoreflect.ServiceDescriptor(nil), services...)
}

// Calls returns the calls of all services, in the order of the contract.
func Calls() []protoreflect.MethodDescriptor {
	var all []protoreflect.MethodDescriptor
	for _, service := range services {
		for i := range service.Methods().Len() {
			all = append(all, service.Methods().Get(i))
		}
	}
	return all
}

// byName and byPath hold the calls of all services by their names and by their paths.
var byName, byPath = func() (names, paths map[string]protoreflect.MethodDescriptor) {
	names, paths = map[string]protoreflect.MethodDescriptor{}, map[string]protoreflect.MethodDescriptor{}
	for _, call := range Calls() {
		names[string(call.Name())], paths[PathOf(call)] = call, call
	}
	return names, paths
}()

// Named returns the call of a name, nil if the contract has none.
func Named(name string) protoreflect.MethodDescriptor { return byName[name] }

// At returns the call of a path, nil if the contract has none.
func At(path string) protoreflect.MethodDescriptor { return byPath[path] }

// PathOf returns the path of a call, such as /apportion.v1.DecisionService/Explain.
func PathOf(call protoreflect.MethodDescriptor) string {
	return "/" + string(call.Parent().FullName()) + "/" + string(call.Name())
}

// IsUnary reports whether a call has one request and one response.
func IsUnary(call protoreflect.MethodDescriptor) bool {
	return !call.IsStreamingClient() && !call.IsStreamingServer()
}

// gone are names of calls that there were, and who answers their questions.
var gone = map[string]string{
	"CheckAllocatable": Simulate.Name, "SelectVictims": Simulate.Name, "ScoreNodes": Simulate.Name, "GetSnapshot": "DownloadSnapshot",
}

// Successor returns the call that answers what a call that is gone did, "" for any other name.
func Successor(name string) string { return gone[name] }
