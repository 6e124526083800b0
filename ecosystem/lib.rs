//! Nothing: the tests beside this file are what there is.
