module github.com/apportion/apportion

go 1.26
