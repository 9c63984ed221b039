// The program that holds a pod's namespaces on a local node; it takes no module.
module dynamo-platform/localcluster/pause

go 1.25.0
