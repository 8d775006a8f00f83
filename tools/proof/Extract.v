(** The checker as a program in OCaml. Numbers stay those of the proof. *)

From Coq Require Import Extraction ExtrOcamlBasic.
From Proof Require Import Certificate.

Extraction Language OCaml.
Extraction "checker.ml" check_certificate.
