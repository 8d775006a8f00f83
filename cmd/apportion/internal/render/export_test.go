package render

// Warning is a warning in lines of at most so many columns.
var Warning = warning
