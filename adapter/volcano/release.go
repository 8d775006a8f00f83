package volcano

import (
	"bytes"
	"path"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

const (
	// DeploymentName is the name of the Deployment of Volcano's scheduler.
	DeploymentName = "volcano-scheduler"

	deploymentKind = "Deployment"
	// schedulerImage is the last part of the name of the scheduler's image.
	schedulerImage = "vc-scheduler"
)

// releaseOf returns the release of the contract whose decisions a release of Volcano takes, by its tag; unspecified, which is 1.15, before
// 1.16.
func releaseOf(tag string) apportionv1.VolcanoRelease {
	if major, minor, ok := version(tag); ok && (major > 1 || major == 1 && minor >= 16) {
		return apportionv1.VolcanoRelease_VOLCANO_RELEASE_1_16
	}
	return apportionv1.VolcanoRelease_VOLCANO_RELEASE_UNSPECIFIED
}

// tagForm is the form of a tag that names a release, with its first two numbers.
var tagForm = regexp.MustCompile(`^v?([0-9]{1,4})\.([0-9]{1,4})([.-][0-9A-Za-z.-]{1,100})?$`)

// version returns the first two numbers of a tag such as v1.16.0-alpha.1. ok is false for a tag of another form, such as latest.
func version(tag string) (major, minor int, ok bool) {
	found := tagForm.FindStringSubmatch(tag)
	if found == nil {
		return 0, 0, false
	}
	major, _ = strconv.Atoi(found[1])
	minor, _ = strconv.Atoi(found[2])
	return major, minor, true
}

// mayDeploy reports whether a text may contain the Deployment of Volcano's scheduler.
func mayDeploy(data []byte) bool {
	return bytes.Contains(data, []byte(schedulerImage)) && bytes.Contains(data, []byte(deploymentKind))
}

// releaseIn returns the release of Volcano that the first Deployment of its scheduler in a namespace runs, as tagged; empty if there is no
// such Deployment, or its tag is no release.
func releaseIn(sources []objects.Source, namespace string) (tag string) {
	for _, source := range sources {
		objects.EachPart(source, mayDeploy, func(part objects.Document) {
			eachNode(&part, func(object *yaml.Node) {
				if tag == "" && isDeployment(object) && textIn(member(object, objects.MetadataField), "namespace") == namespace {
					tag = imageRelease(object)
				}
			})
		})
	}
	return tag
}

// isDeployment reports whether an object is the Deployment of Volcano's scheduler, in some namespace.
func isDeployment(object *yaml.Node) bool {
	name := textIn(member(object, objects.MetadataField), objects.NameField)
	return textIn(object, objects.KindField) == deploymentKind && name == DeploymentName
}

// imageRelease returns the tag of the scheduler's image in a Deployment, empty if there is none or it is no release.
func imageRelease(deployment *yaml.Node) string {
	pod := member(member(member(deployment, "spec"), "template"), "spec")
	for _, container := range elements(member(pod, "containers")) {
		name, _, _ := strings.Cut(textIn(container, "image"), "@")
		repository, tag, _ := strings.Cut(path.Base(name), ":")
		if _, _, ok := version(tag); ok && repository == schedulerImage {
			return tag
		}
	}
	return ""
}
