// Package conformance holds no code of the product. Its tests are the scenarios that a
// durable job must get through, one test each and named after its number: C create, F
// find, R run, T terminate and delete, P parents and children, O ports, J joins, S state,
// H channels, Y whole stories. Each runs on a real Redis, on a cluster and on miniredis.
package conformance
