(* Prints 1 for each certificate that is accepted and 0 for each that is not: one in a line of numbers, as internal/test/proof writes them.
   This reads and counts; the verdict is that of checker.ml, which Coq extracts from Certificate.v. *)

open Checker

let rec positive n = if n = 1 then XH else if n land 1 = 1 then XI (positive (n lsr 1)) else XO (positive (n lsr 1))
let small n = if n = 0 then Z0 else Zpos (positive n)
let ten = small 10

(* Whole numbers of any length; -1 is the only one below 0. *)
let number = function
  | "-1" -> Zneg XH
  | s when String.length s <= 18 -> small (int_of_string s)
  | s -> String.fold_left (fun z digit -> Z.add (Z.mul z ten) (small (Char.code digit - Char.code '0'))) Z0 s

type line = { words : string array; mutable at : int }

let next line =
  let w = line.words.(line.at) in
  line.at <- line.at + 1;
  w

let rec times n f = if n = 0 then [] else let x = f () in x :: times (n - 1) f
let listed line f = times (int_of_string (next line)) (fun () -> f line)
let optional line f = match next line with "0" -> None | _ -> Some (f line)

let portion line =
  let n () = number (next line) in
  let queue = n () in
  let guaranteed = n () in
  let begin0 = n () in
  let useful = n () in
  let weight_of = n () in
  let start_of = n () in
  let ceiling_of = n () in
  let base_of = n () in
  let share = n () in
  let guarantee_line = n () in
  let fair_line = n () in
  let bound_of = match next line with "UPPER" -> Upper | "LOWER" -> Lower | "LEVEL" -> Level | _ -> No_bound in
  { queue; guaranteed; begin0; useful; weight_of; start_of; ceiling_of; base_of; share; guarantee_line; fair_line; bound_of }

let table line =
  let parent = number (next line) in
  let dimension = number (next line) in
  let divided = number (next line) in
  let case = match next line with "GUARANTEE" -> Guarantee | "DESERVED" -> Deserved | "WEIGHT" -> Weight | _ -> Other_way in
  let level = optional line (fun line -> let n = number (next line) in (n, number (next line))) in
  let children = listed line portion in
  let root = optional line portion in
  { parent; dimension; divided; case; level; children; root }

let () =
  try
    while true do
      let line = { words = Array.of_list (String.split_on_char ' ' (input_line stdin)); at = 0 } in
      let divisions = listed line table in
      let sated = listed line table in
      if line.at <> Array.length line.words then failwith "a line has more numbers than it says";
      print_char (if check_certificate divisions sated then '1' else '0');
      print_char '\n'
    done
  with End_of_file -> ()
