// Package docs holds the documents of the project. Its tests run every example in them: numbers that drift fail here.
package docs
