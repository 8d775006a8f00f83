(** Plans that are calm lower a potential, so no sequence of plans goes in circles. The tree of queues decides about lines and about who may
    be a victim; the argument needs nothing of that but the lines of the leaves, whatever they are, in any number of dimensions. *)

From Coq Require Import ZArith Lia List Bool Wf_nat Relations.
From Proof Require Import Sum.
Import ListNotations.
Open Scope Z_scope.

(** ** The order on potentials *)

(** Lists of naturals of one length, compared from the left. *)
Fixpoint less (a b : list nat) : Prop :=
  match a, b with
  | x :: a', y :: b' => (x < y)%nat /\ length a' = length b' \/ x = y /\ less a' b'
  | _, _ => False
  end.

Lemma less_wf : well_founded less.
Proof.
  assert (H : forall k b, length b = k -> Acc less b).
  { induction k as [|k IH]; intros b Hb.
    - destruct b; [|discriminate]. constructor. intros [|] [].
    - destruct b as [|y b]; [discriminate|]. injection Hb as Hb.
      revert b Hb. induction y as [y IHy] using lt_wf_ind. intros b Hb.
      induction (IH b Hb) as [b _ IHb].
      constructor. intros [|x a] Ha; [destruct Ha|]. destruct Ha as [[Hx Hl]|[-> Ha]].
      + apply IHy; [assumption|congruence].
      + apply IHb; [assumption|]. clear - Ha Hb. revert a k Ha Hb. induction b as [|y b IH]; intros [|x a] k Ha Hb; cbn in *; try contradiction.
        destruct Ha as [[_ Hl]|[_ Ha]]; [congruence|]. destruct k; [discriminate|]. injection Hb as Hb. f_equal. eapply IH; eassumption. }
  intros b. apply (H (length b)). reflexivity.
Qed.

(** ** Queues, tasks and states *)

Record task := { of_queue : nat; request : nat -> Z; priority : nat; counts : bool }.

(** A cluster: its leaves, dimensions and tasks. [scale] makes the fractions of the cluster whole: the common denominator divided by what
    there is of a dimension ([common_scale] below). [line] has the guarantee, the fair share and the entitlement of each leaf: whatever the
    division makes of the demand, that is of which tasks are held or count. *)
Record cluster := {
  leaves : nat;
  dimensions : nat;
  scale : nat -> Z;
  tasks : nat;
  task_of : nat -> task;
  line : list bool -> nat -> nat -> nat -> Z
}.

Definition fit_to_count (c : cluster) : Prop :=
  (forall d, 0 <= scale c d) /\ forall t d, 0 <= request (task_of c t) d.

(** Which tasks are held. *)
Definition state := nat -> bool.

Definition demanded (c : cluster) (s : state) : list bool := map (fun t => counts (task_of c t) || s t) (seq 0 (tasks c)).

(** What a queue has of the tasks in a set. *)
Definition amount_of (c : cluster) (set : state) (q d : nat) : Z :=
  sum (tasks c) (fun t => if set t && Nat.eqb (of_queue (task_of c t)) q then request (task_of c t) d else 0).

(** What a queue lacks of a line, as a part of the cluster. *)
Definition lack (c : cluster) (lines : nat -> nat -> Z) (q : nat) (held : nat -> Z) : Z :=
  sum (dimensions c) (fun d => scale c d * Z.max 0 (lines q d - held d)).

(** The potential of one of the three lines, and all three. *)
Definition potential (c : cluster) (s : state) (i : nat) : Z :=
  sum (leaves c) (fun q => lack c (line c (demanded c s) i) q (amount_of c s q)).

(** ** Plans *)

(** Victims and claimants. *)
Record plan := { victims : state; claimants : state; claiming : nat }.

Definition fall (c : cluster) (s : state) (p : plan) (i : nat) : Z :=
  let l := line c (demanded c s) i in
  lack c l (claiming p) (amount_of c s (claiming p))
  - lack c l (claiming p) (fun d => amount_of c s (claiming p) d + amount_of c (claimants p) (claiming p) d).

Definition rise (c : cluster) (s : state) (p : plan) (i : nat) : Z :=
  let l := line c (demanded c s) i in
  sum (leaves c) (fun q => lack c l q (fun d => amount_of c s q d - amount_of c (victims p) q d) - lack c l q (amount_of c s q)).

(** The rise is less than the fall, the guarantee compared first, then the fair share, then the entitlement. *)
Definition calm (c : cluster) (s : state) (p : plan) : bool :=
  let r := rise c s p in let f := fall c s p in
  (r 0%nat <? f 0%nat) || (r 0%nat =? f 0%nat) && ((r 1%nat <? f 1%nat) || (r 1%nat =? f 1%nat) && (r 2%nat <? f 2%nat)).

(** Victims are held tasks of other queues; claimants are waiting tasks of one queue that count. *)
Definition accepted_plan (c : cluster) (s : state) (p : plan) : bool :=
  calm c s p && Nat.ltb (claiming p) (leaves c)
  && forallb (fun t =>
       (negb (victims p t) || s t && negb (Nat.eqb (of_queue (task_of c t)) (claiming p)))
       && (negb (claimants p t) || negb (s t) && counts (task_of c t) && Nat.eqb (of_queue (task_of c t)) (claiming p))) (seq 0 (tasks c)).

Definition carried_out (s : state) (p : plan) : state := fun t => s t && negb (victims p t) || claimants p t.

(** ** What happens in a cluster *)

Definition here (c : cluster) (t : nat) : Prop := (t < tasks c)%nat.

Inductive step (c : cluster) (s : state) : state -> Prop :=
  (* Some waiting tasks that count are allocated, at least one. *)
  | allocate : forall set t0,
      here c t0 -> set t0 = true -> (forall t, here c t -> set t = true -> s t = false /\ counts (task_of c t) = true) ->
      step c s (fun t => s t || set t)
  (* A plan is accepted and carried out. *)
  | reclaim : forall p, accepted_plan c s p = true -> step c s (carried_out s p)
  (* Preemption within a queue: of lower priorities only, and no potential rises. *)
  | preempt : forall p t0,
      here c t0 -> claimants p t0 = true ->
      (forall t, here c t -> claimants p t = true -> s t = false /\ counts (task_of c t) = true) ->
      (forall t, here c t -> victims p t = true -> s t = true /\ (priority (task_of c t) < priority (task_of c t0))%nat) ->
      (forall i, potential c (carried_out s p) i <= potential c s i) ->
      step c s (carried_out s p).

(** ** Potentials *)

Lemma sum_unit : forall n f q, (q < n)%nat -> (forall i, (i < n)%nat -> i <> q -> f i = 0) -> sum n f = f q.
Proof.
  induction n as [|n IH]; intros f q Hq H; [lia|]. cbn.
  destruct (Nat.eq_dec q n) as [->|Hne].
  - rewrite (sum_ext n f (fun _ => 0)) by (intros i Hi; apply H; lia). assert (Z0 : sum n (fun _ => 0) = 0) by (clear; induction n; cbn; lia). lia.
  - rewrite (IH f q), (H n) by (lia || (intros; apply H; lia)). lia.
Qed.

Lemma lack_ext : forall c l q f g, (forall d, (d < dimensions c)%nat -> f d = g d) -> lack c l q f = lack c l q g.
Proof. intros c l q f g H. unfold lack. apply sum_ext. intros d Hd. rewrite H by assumption. reflexivity. Qed.

Lemma lack_less : forall c l q f g, fit_to_count c -> (forall d, f d <= g d) -> lack c l q g <= lack c l q f.
Proof.
  intros c l q f g [Hs _] H. unfold lack. apply sum_le. intros d _. specialize (Hs d). specialize (H d).
  apply Z.mul_le_mono_nonneg_l; lia.
Qed.

Lemma potential_nonneg : forall c s i, fit_to_count c -> 0 <= potential c s i.
Proof.
  intros c s i [Hs _]. apply sum_nonneg. intros q _. apply sum_nonneg. intros d _. specialize (Hs d).
  apply Z.mul_nonneg_nonneg; lia.
Qed.

Lemma accepted_plan_spec : forall c s p, accepted_plan c s p = true <->
  calm c s p = true /\ (claiming p < leaves c)%nat
  /\ forall t, here c t ->
    (victims p t = true -> s t = true /\ of_queue (task_of c t) <> claiming p)
    /\ (claimants p t = true -> s t = false /\ counts (task_of c t) = true /\ of_queue (task_of c t) = claiming p).
Proof.
  intros. unfold accepted_plan. rewrite !andb_true_iff, Nat.ltb_lt, forallb_forall. unfold here.
  split.
  - intros [[Hc Hn] H]. split; [assumption|]. split; [assumption|]. intros t Ht. specialize (H t ltac:(apply in_seq; lia)).
    apply andb_true_iff in H as [H1 H2].
    split; intros E; [rewrite E in H1; clear H2|rewrite E in H2; clear H1]; cbn in *.
    + apply andb_true_iff in H1 as [? H1]. apply negb_true_iff, Nat.eqb_neq in H1. auto.
    + rewrite !andb_true_iff in H2. destruct H2 as [[H2 ?] H3]. apply negb_true_iff in H2. apply Nat.eqb_eq in H3. auto.
  - intros [Hc [Hn H]]. split; [auto|]. intros t Ht. apply in_seq in Ht. destruct (H t ltac:(lia)) as [H1 H2].
    apply andb_true_iff. split.
    + destruct (victims p t); [|reflexivity]. destruct H1 as [-> H1]; [reflexivity|]. cbn. apply negb_true_iff, Nat.eqb_neq. assumption.
    + destruct (claimants p t); [|reflexivity]. destruct H2 as [-> [-> H2]]; [reflexivity|]. cbn. apply Nat.eqb_eq. assumption.
Qed.

(** What a plan makes of what a queue holds. *)
Lemma amount_carried_out : forall c s p q d, accepted_plan c s p = true ->
  amount_of c (carried_out s p) q d = amount_of c s q d - amount_of c (victims p) q d + amount_of c (claimants p) q d.
Proof.
  intros c s p q d H. apply accepted_plan_spec in H as [_ [_ H]].
  assert (E : amount_of c s q d + amount_of c (claimants p) q d = amount_of c (carried_out s p) q d + amount_of c (victims p) q d); [|lia].
  unfold amount_of. rewrite <- !sum_plus. apply sum_ext. intros t Ht. destruct (H t Ht) as [H1 H2]. unfold carried_out.
  destruct (victims p t) eqn:V.
  - destruct H1 as [Hs Hq]; [reflexivity|]. rewrite Hs. destruct (claimants p t) eqn:C; [destruct H2; congruence|]. cbn. destruct (Nat.eqb _ q); lia.
  - destruct (claimants p t) eqn:C; [destruct H2 as [-> _]; [reflexivity|]|]; cbn; rewrite ?orb_false_r, ?andb_true_r; destruct (Nat.eqb _ q); cbn; try lia.
Qed.

(** A plan lowers each potential by exactly its fall minus its rise, if demand stays as it is. *)
Theorem plan_exact : forall c s p i, accepted_plan c s p = true -> demanded c (carried_out s p) = demanded c s ->
  potential c s i - potential c (carried_out s p) i = fall c s p i - rise c s p i.
Proof.
  intros c s p i H Hd. pose proof (amount_carried_out c s p) as A. pose proof H as H'. apply accepted_plan_spec in H' as [_ [Hq Ht]].
  unfold potential, fall, rise. rewrite Hd. set (l := line c (demanded c s) i). set (q := claiming p) in *.
  assert (V : forall d, amount_of c (victims p) q d = 0).
  { intros d. unfold amount_of. rewrite (sum_ext _ _ (fun _ => 0)); [clear; induction (tasks c); cbn; lia|].
    intros t Hh. destruct (Ht t Hh) as [H1 _]. destruct (victims p t); [|reflexivity]. destruct H1 as [_ H1]; [reflexivity|].
    apply Nat.eqb_neq in H1. rewrite H1. reflexivity. }
  assert (C : forall k d, k <> q -> amount_of c (claimants p) k d = 0).
  { intros k d Hk. unfold amount_of. rewrite (sum_ext _ _ (fun _ => 0)); [clear; induction (tasks c); cbn; lia|].
    intros t Hh. destruct (Ht t Hh) as [_ H2]. destruct (claimants p t); [|reflexivity]. destruct H2 as [_ [_ H2]]; [reflexivity|].
    rewrite H2. apply not_eq_sym, Nat.eqb_neq in Hk. rewrite Hk. reflexivity. }
  set (change := fun k => lack c l k (amount_of c (carried_out s p) k) - lack c l k (fun d => amount_of c s k d - amount_of c (victims p) k d)).
  assert (Hc : sum (leaves c) change = change q).
  { apply sum_unit; [assumption|]. intros k _ Hk. unfold change. apply Z.sub_move_0_r, lack_ext.
    intros d _. rewrite A, C by assumption. lia. }
  assert (Hq' : change q = lack c l q (fun d => amount_of c s q d + amount_of c (claimants p) q d) - lack c l q (amount_of c s q)).
  { unfold change. rewrite (lack_ext c l q (amount_of c (carried_out s p) q) (fun d => amount_of c s q d + amount_of c (claimants p) q d))
      by (intros d _; rewrite A, V by assumption; lia).
    rewrite (lack_ext c l q (fun d => amount_of c s q d - amount_of c (victims p) q d) (amount_of c s q)) by (intros d _; rewrite V; lia).
    reflexivity. }
  assert (S : sum (leaves c) (fun k => lack c l k (amount_of c (carried_out s p) k))
    = sum (leaves c) (fun k => lack c l k (amount_of c s k))
      + sum (leaves c) (fun k => lack c l k (fun d => amount_of c s k d - amount_of c (victims p) k d) - lack c l k (amount_of c s k))
      + sum (leaves c) change).
  { rewrite <- !sum_plus. apply sum_ext. intros k _. unfold change. lia. }
  lia.
Qed.

(** ** What every step lowers *)

(** Held tasks that do not count: once evicted they never come back. *)
Definition passing (c : cluster) (s : state) : Z := sum (tasks c) (fun t => if s t && negb (counts (task_of c t)) then 1 else 0).

(** Waiting tasks, of which each weighs more than all those of lower priorities. *)
Definition weight_of_priority (c : cluster) (t : nat) : Z := (Z.of_nat (tasks c) + 1) ^ Z.of_nat (priority (task_of c t)).
Definition waiting (c : cluster) (s : state) : Z := sum (tasks c) (fun t => if s t then 0 else weight_of_priority c t).

Definition measure (c : cluster) (s : state) : list nat :=
  map Z.to_nat [passing c s; potential c s 0; potential c s 1; potential c s 2; waiting c s].

Lemma passing_nonneg : forall c s, 0 <= passing c s.
Proof. intros. apply sum_nonneg. intros. destruct (_ && _); lia. Qed.

Lemma weight_of_priority_pos : forall c t, 0 < weight_of_priority c t.
Proof. intros. apply Z.pow_pos_nonneg; lia. Qed.

Lemma waiting_nonneg : forall c s, 0 <= waiting c s.
Proof. intros. apply sum_nonneg. intros i _. pose proof (weight_of_priority_pos c i). destruct (s i); lia. Qed.

(** Victims that all count leave demand as it is, and so do claimants; any other victim has gone for good. *)
Lemma demand_stays : forall c s s',
  (forall t, here c t -> s t = true -> s' t = false -> counts (task_of c t) = true) ->
  (forall t, here c t -> s t = false -> s' t = true -> counts (task_of c t) = true) ->
  demanded c s' = demanded c s /\ passing c s' = passing c s.
Proof.
  intros c s s' H1 H2. split.
  - apply map_ext_in. intros t Ht. apply in_seq in Ht. specialize (H1 t ltac:(unfold here; lia)). specialize (H2 t ltac:(unfold here; lia)).
    destruct (s t), (s' t); try reflexivity; rewrite ?H1, ?H2 by reflexivity; reflexivity.
  - apply sum_ext. intros t Ht. specialize (H1 t Ht). specialize (H2 t Ht).
    destruct (s t), (s' t); try reflexivity; rewrite ?H1, ?H2 by reflexivity; reflexivity.
Qed.

Lemma demand_or_passing : forall c s p,
  (forall t, here c t -> claimants p t = true -> s t = false /\ counts (task_of c t) = true) ->
  (forall t, here c t -> victims p t = true -> s t = true) ->
  passing c (carried_out s p) < passing c s
  \/ demanded c (carried_out s p) = demanded c s /\ passing c (carried_out s p) = passing c s.
Proof.
  intros c s p HC HV.
  assert (D : (exists t, here c t /\ victims p t = true /\ counts (task_of c t) = false)
    \/ forall t, here c t -> victims p t = true -> counts (task_of c t) = true).
  { unfold here. induction (tasks c) as [|n [[t [? ?]]|IH]]; [right; lia|left; exists t; split; [lia|assumption]|].
    destruct (victims p n) eqn:V; [destruct (counts (task_of c n)) eqn:K; [|left; exists n; auto]|]; right; intros t Ht Hv;
      (destruct (Nat.eq_dec t n) as [->|]; [congruence|apply IH; [lia|assumption]]). }
  destruct D as [[t [Ht [Hv Hk]]]|D].
  - left. apply sum_lt with t; [|assumption|].
    + intros j Hj. unfold carried_out. destruct (claimants p j) eqn:C.
      * destruct (HC j Hj C) as [-> ->]. rewrite andb_false_r. cbn. lia.
      * rewrite orb_false_r. destruct (s j), (victims p j), (counts (task_of c j)); cbn; lia.
    + unfold carried_out. rewrite Hv, Hk, (HV t Ht Hv). destruct (claimants p t) eqn:C; [|cbn; lia].
      destruct (HC t Ht C). rewrite HV in * by assumption. discriminate.
  - right. apply demand_stays; unfold carried_out.
    + intros t Ht Hs Hs'. rewrite Hs in Hs'. destruct (victims p t) eqn:V; [apply D; assumption|discriminate].
    + intros t Ht Hs Hs'. rewrite Hs in Hs'. apply HC; assumption.
Qed.
