(** The checker of certificates, as data and as a program: what client/check/certificate does in Go. Its verdicts are compared with those of the
    checkers in Go and Python by `make proof`. Numbers are whole. *)

From Coq Require Import ZArith Lia List Bool.
From Proof Require Import Sum Webster.
Import ListNotations.
Open Scope Z_scope.

Inductive way := Guarantee | Deserved | Weight | Other_way.
Inductive bound := Upper | Lower | Level | No_bound.

(** One queue's part of a division. A root that is no queue has a negative number. *)
Record portion := {
  queue : Z;
  guaranteed : Z;
  begin : Z;
  useful : Z;
  weight_of : Z;
  start_of : Z;
  ceiling_of : Z;
  base_of : Z;
  share : Z;
  guarantee_line : Z;
  fair_line : Z;
  bound_of : bound
}.

(** What one queue divides of one dimension among its children, which are in the order of rank. *)
Record table := {
  parent : Z;
  dimension : Z;
  divided : Z;
  case : way;
  level : option (Z * Z);
  children : list portion;
  root : option portion
}.

Definition way_eqb (a b : way) : bool :=
  match a, b with Guarantee, Guarantee | Deserved, Deserved | Weight, Weight | Other_way, Other_way => true | _, _ => false end.
Definition bound_eqb (a b : bound) : bool :=
  match a, b with Upper, Upper | Lower, Lower | Level, Level | No_bound, No_bound => true | _, _ => false end.

Definition nobody : portion := {|
  queue := 0; guaranteed := 0; begin := 0; useful := 0; weight_of := 0; start_of := 0; ceiling_of := 0; base_of := 0; share := 0;
  guarantee_line := 0; fair_line := 0; bound_of := No_bound |}.

Definition child (list : list portion) (i : nat) : portion := nth i list nobody.
Definition total (f : portion -> Z) (list : list portion) : Z := sum (length list) (fun i => f (child list i)).

(** The question that the numbers of a certificate state, and the shares that it answers with. *)
Definition question_of (t : table) : question := {|
  size := length (children t);
  weight := fun i => weight_of (child (children t) i);
  start := fun i => start_of (child (children t) i);
  ceiling := fun i => ceiling_of (child (children t) i);
  base := fun i => base_of (child (children t) i);
  amount := divided t |}.

Definition shares (t : table) : nat -> Z := fun i => share (child (children t) i).

(** ** One division *)

(** Which of the three cases applies. *)
Definition way_of (t : table) : way :=
  if divided t <? total guaranteed (children t) then Guarantee
  else if divided t <? total begin (children t) then Deserved
  else Weight.

(** From where, to where and from which base a child gets units. With [on_top] weights are added to where they begin: the setting base is
    not NONE. *)
Definition span (on_top : bool) (w : way) (p : portion) : Z * Z * Z :=
  match w with
  | Guarantee => (0, guaranteed p, 0)
  | Deserved => (guaranteed p, begin p, 0)
  | _ => (begin p, useful p, if on_top then begin p else 0)
  end.

(** What weighs in a case is at least what it weighs for. *)
Definition least_weight (w : way) (p : portion) : Z :=
  match w with Guarantee => guaranteed p | Deserved => begin p | _ => 0 end.

Definition check_child (on_top : bool) (w : way) (p : portion) : bool :=
  let '(s, c, b) := span on_top w p in
  (start_of p =? s) && (ceiling_of p =? c) && (base_of p =? b)
  && (0 <=? guaranteed p) && (guaranteed p <=? useful p) && (begin p =? Z.max (guaranteed p) (Z.min (begin p) (useful p)))
  && (least_weight w p <=? weight_of p)
  && bound_eqb (bound_of p) (if share p =? c then Upper else if share p =? s then Lower else Level).

Definition within_b (q : question) (e : nat -> Z) : bool :=
  forallb (fun i => (start q i <=? e i) && (e i <=? top q i)) (seq 0 (size q)).

Definition stable_b (q : question) (e : nat -> Z) : bool :=
  forallb (fun i => forallb (fun j =>
    negb ((start q i <? e i) && (e j <? top q j)) || Nat.eqb i j || before_b q i (e i) j (e j + 1)) (seq 0 (size q))) (seq 0 (size q)).

(** The greatest signpost of a unit that was given: as a fraction, and reduced. *)
Fixpoint highest (q : question) (e : nat -> Z) (list : list nat) : option (Z * Z) :=
  match list with
  | [] => None
  | i :: rest =>
      if start q i <? e i then
        match highest q e rest with
        | Some (n, d) => if n * (2 * weight q i) <? odd q i (e i) * d then Some (odd q i (e i), 2 * weight q i) else Some (n, d)
        | None => Some (odd q i (e i), 2 * weight q i)
        end
      else highest q e rest
  end.

Definition reduced (f : option (Z * Z)) : option (Z * Z) :=
  match f with
  | Some (n, d) => Some (n / Z.gcd n d, d / Z.gcd n d)
  | None => None
  end.

Definition level_eqb (a b : option (Z * Z)) : bool :=
  match a, b with
  | Some (n, d), Some (m, e) => (n =? m) && (d =? e)
  | None, None => true
  | _, _ => false
  end.

Definition check_table (on_top : bool) (own : Z) (t : table) : bool :=
  let q := question_of t in
  (divided t =? own) && (0 <=? divided t)
  && way_eqb (case t) (way_of t)
  && forallb (check_child on_top (case t)) (children t)
  && within_b q (shares t)
  && (total share (children t) =? handed q)
  && stable_b q (shares t)
  && level_eqb (level t) (reduced (highest q (shares t) (seq 0 (size q)))).

(** ** All divisions, parents first *)

(** What each queue is given of each dimension, the last that was stated first. *)
Definition key : Type := Z * Z.
Definition key_eqb (a b : key) : bool := (fst a =? fst b) && (snd a =? snd b).
Definition ledger : Type := list (key * portion).

Fixpoint lookup (k : key) (l : ledger) : option portion :=
  match l with
  | [] => None
  | (k', p) :: rest => if key_eqb k k' then Some p else lookup k rest
  end.

Definition stated_root (t : table) : list portion := match root t with Some r => [r] | None => [] end.
Definition enter (t : table) (l : ledger) : ledger :=
  rev (map (fun p => ((queue p, dimension t), p)) (children t ++ stated_root t)) ++ l.

Definition check_root (p : portion) : bool :=
  (weight_of p =? 0) && (start_of p =? 0) && (ceiling_of p =? 0) && (base_of p =? 0) && bound_eqb (bound_of p) No_bound.

(** What a queue has to divide: its own share, in this list or else in the other. *)
Definition own (other given : ledger) (t : table) : Z :=
  match lookup (parent t, dimension t) given with
  | Some p => share p
  | None => match lookup (parent t, dimension t) other with Some p => share p | None => 0 end
  end.

Fixpoint check_tables (on_top : bool) (other given : ledger) (list : list table) : bool :=
  match list with
  | [] => true
  | t :: rest =>
      let given' := enter t given in
      forallb check_root (stated_root t)
      && (match children t with [] => true | _ => check_table on_top (own other given' t) t end)
      && check_tables on_top other given' rest
  end.

Definition ledger_of (list : list table) : ledger := fold_left (fun l t => enter t l) list [].

(** The setting base is not NONE if a base is not 0. *)
Definition adds_on_top (list : list table) : bool := existsb (fun t => existsb (fun p => negb (base_of p =? 0)) (children t)) list.

Definition check_lines (e given sated : portion) : bool :=
  (guarantee_line e =? Z.min (guaranteed given) (share given))
  && (fair_line e =? Z.min (Z.max (guaranteed given) (share sated)) (share given)).

Definition check_all_lines (given sated : ledger) : bool :=
  forallb (fun k =>
    match lookup k given with
    | None => true
    | Some g => let s := match lookup k sated with Some s => s | None => g end in check_lines g g s && check_lines s g s
    end) (map fst given).

(** The verdict on a certificate: the divisions that give the entitlements, and those that give the fair shares. *)
Definition check_certificate (divisions sated : list table) : bool :=
  let on_top := adds_on_top (divisions ++ sated) in
  let given := ledger_of divisions in
  check_tables on_top [] [] divisions
  && check_tables on_top given [] sated
  && check_all_lines given (ledger_of sated).

(** ** What it means that a division is accepted *)

Lemma way_eqb_eq : forall a b, way_eqb a b = true <-> a = b.
Proof. intros [] []; cbn; split; congruence. Qed.

Lemma bound_eqb_eq : forall a b, bound_eqb a b = true <-> a = b.
Proof. intros [] []; cbn; split; congruence. Qed.

Lemma level_eqb_eq : forall a b, level_eqb a b = true <-> a = b.
Proof.
  intros [[]|] [[]|]; cbn; rewrite ?andb_true_iff, ?Z.eqb_eq; split; intros H; try congruence; try discriminate.
  - destruct H. congruence.
  - injection H. auto.
Qed.

Lemma forallb_seq : forall n f, forallb f (seq 0 n) = true <-> forall i, (i < n)%nat -> f i = true.
Proof.
  intros. rewrite forallb_forall. split; intros H i Hi; apply H.
  - apply in_seq. lia.
  - apply in_seq in Hi. lia.
Qed.

Lemma within_spec : forall q e, within_b q e = true <-> within q e.
Proof.
  intros. unfold within_b, within. rewrite forallb_seq.
  split; intros H i Hi; specialize (H i Hi); [rewrite andb_true_iff, !Z.leb_le in H|rewrite andb_true_iff, !Z.leb_le]; lia.
Qed.

Lemma stable_spec : forall q e, stable_b q e = true <-> stable q e.
Proof.
  intros. unfold stable_b, stable. rewrite forallb_seq. split; intros H i.
  - intros j Hi Hj Hne Hs Ht. specialize (H i Hi). rewrite forallb_seq in H. specialize (H j Hj).
    apply Z.ltb_lt in Hs, Ht. apply Nat.eqb_neq in Hne. rewrite Hs, Ht, Hne in H. cbn in H. apply before_spec. assumption.
  - intros Hi. apply forallb_seq. intros j Hj.
    destruct (Z.ltb_spec (start q i) (e i)); [|reflexivity].
    destruct (Z.ltb_spec (e j) (top q j)); [|reflexivity].
    destruct (Nat.eqb_spec i j); [reflexivity|]. cbn. apply before_spec. auto.
Qed.
