"""The what-if page: the library's own functions and equations as one script, its data, and the page's form."""
