"""`edge-road data check`: what is wrong with a data set, file by file, before a training is spent on it."""
