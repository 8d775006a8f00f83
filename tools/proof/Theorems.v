(** The theorems, as docs/proof.md lists them. Assumptions.v prints what each rests on. *)

From Coq Require Import ZArith Lia List Bool Relations.
From Proof Require Import Sum Webster Certificate Accepted Monotone Tree Calm Ends.
Import ListNotations.
Open Scope Z_scope.

(** ** T1: an accepted certificate determines the division *)

(** The shares of an accepted table are what the procedure of docs/fair.md makes of the siblings and the amount. *)
Theorem t1_determined : forall on_top y l t,
  check_table on_top y t = true -> Forall2 (states (case t)) l (children t) ->
  forall i, (i < length l)%nat -> shares t i = webster (asked on_top l y) i.
Proof. exact accepted_webster. Qed.

(** They are a division in which no unit belongs to another child, and there is no other. *)
Theorem t1_unique : forall on_top y l t,
  check_table on_top y t = true -> Forall2 (states (case t)) l (children t) ->
  division (asked on_top l y) (shares t)
  /\ forall e, division (asked on_top l y) e -> forall i, (i < length l)%nat -> e i = shares t i.
Proof.
  intros on_top y l t H HF. destruct (accepted _ _ _ _ H HF) as [_ [_ [S D]]]. split; [assumption|].
  intros e D' i Hi. apply unique with (asked on_top l y); assumption.
Qed.

(** The level is the signpost of the last unit, and each share is base + weight * level, rounded, within its bounds. *)
Lemma highest_spec : forall q e l,
  match highest q e l with
  | None => forall i, In i l -> e i <= start q i
  | Some (n, d) => (exists i, In i l /\ start q i < e i /\ n = odd q i (e i) /\ d = 2 * weight q i)
      /\ ((forall i, In i l -> start q i < e i -> 0 < weight q i) -> forall i, In i l -> start q i < e i -> odd q i (e i) * d <= n * (2 * weight q i))
  end.
Proof.
  intros q e. induction l as [|x l IH]; cbn [highest]; [intros i []|].
  destruct (Z.ltb_spec (start q x) (e x)) as [Hx|Hx].
  - destruct (highest q e l) as [[n d]|].
    + destruct IH as [[k [Hk [Hsk [En Ed]]]] Hmax].
      destruct (Z.ltb_spec (n * (2 * weight q x)) (odd q x (e x) * d)) as [Hlt|Hge].
      * split; [exists x; cbn; auto|]. intros P i [<-|Hi] Hs; [lia|].
        specialize (Hmax ltac:(intros; apply P; cbn; auto) i Hi Hs).
        assert (0 < weight q k) by (apply P; cbn; auto). assert (0 < weight q x) by (apply P; cbn; auto). assert (0 < weight q i) by (apply P; cbn; auto).
        apply Z.mul_le_mono_pos_r with d; [lia|].
        assert (odd q i (e i) * d * (2 * weight q x) <= n * (2 * weight q i) * (2 * weight q x)) by (apply Z.mul_le_mono_nonneg_r; lia).
        assert (n * (2 * weight q x) * (2 * weight q i) <= odd q x (e x) * d * (2 * weight q i)) by (apply Z.mul_le_mono_nonneg_r; lia).
        lia.
      * split; [exists k; cbn; auto|]. intros P i [<-|Hi] Hs; [lia|]. apply Hmax; auto. intros; apply P; cbn; auto.
    + split; [exists x; cbn; auto|]. intros P i [<-|Hi] Hs; [lia|]. specialize (IH i Hi). lia.
  - destruct (highest q e l) as [[n d]|].
    + destruct IH as [[k [Hk Hr]] Hmax]. split; [exists k; cbn; auto|]. intros P i [<-|Hi] Hs; [lia|]. apply Hmax; auto. intros; apply P; cbn; auto.
    + intros i [<-|Hi]; auto.
Qed.

Theorem t1_level : forall on_top y l t num den,
  check_table on_top y t = true -> Forall2 (states (case t)) l (children t) -> level t = Some (num, den) ->
  0 < den /\ forall i, (i < length l)%nat ->
  let q := asked on_top l y in
  exists x, shares t i = Z.max (start q i) (Z.min x (top q i))
    /\ 2 * den * (x - base q i) - den <= 2 * weight q i * num <= 2 * den * (x - base q i) + den.
Proof.
  intros on_top y l t num den H HF HL. set (q := asked on_top l y).
  destruct (accepted _ _ _ _ H HF) as [Hy [Hc [S D]]]. fold q in S, D.
  assert (Hh : level t = reduced (highest q (shares t) (seq 0 (size q)))).
  { pose proof (proj1 (check_table_spec _ _ _) H) as [_ [_ [Hcase [Hch [_ [_ [_ E]]]]]]]. rewrite E. f_equal.
    pose proof (Forall2_length _ _ _ HF) as Hlen. cbn [size question_of asked q]. rewrite <- Hlen.
    symmetry. apply highest_ext.
    - split; [cbn; lia|]. split; [cbn; congruence|]. cbn. rewrite <- Hlen, <- Hc. intros i Hi.
      assert (P := Forall2_nth _ _ _ nameless nobody i HF Hi).
      apply way_of_weigh with (on_top := on_top) in P; [destruct P as [P1 [P2 [P3 [P4 _]]]]; auto|rewrite Hcase; apply way_of_three|].
      apply Hch, nth_In. lia.
    - intros i Hi. apply in_seq in Hi. cbn. lia.
    - reflexivity. }
  rewrite HL in Hh. pose proof (highest_spec q (shares t) (seq 0 (size q))) as Hs.
  destruct (highest q (shares t) (seq 0 (size q))) as [[n d]|]; [|discriminate]. cbn in Hh. injection Hh as -> ->.
  destruct Hs as [[k [Hk [Hsk [En Ed]]]] Hmax].
  assert (P : forall i, In i (seq 0 (size q)) -> start q i < shares t i -> 0 < weight q i).
  { intros i Hi Hs. apply in_seq in Hi. destruct D as [W _]. apply weighted with (start q i); try assumption; try lia.
    specialize (W i ltac:(lia)). lia. }
  specialize (Hmax P). specialize (P k Hk Hsk).
  assert (Hg : 0 < Z.gcd n d).
  { pose proof (Z.gcd_nonneg n d). assert (Z.gcd n d <> 0); [|lia]. intros E. apply Z.gcd_eq_0_r in E. lia. }
  set (g := Z.gcd n d) in *.
  assert (Dn : n = g * (n / g)) by (apply Z.div_exact; [lia|]; apply Z.mod_divide; [lia|]; apply Z.gcd_divide_l).
  assert (Dd : d = g * (d / g)) by (apply Z.div_exact; [lia|]; apply Z.mod_divide; [lia|]; apply Z.gcd_divide_r).
  assert (Hd : 0 < d / g) by (apply Z.mul_pos_cancel_l with g; lia).
  split; [assumption|]. intros i Hi. apply level_rounds; try assumption.
  split.
  - exists k. apply in_seq in Hk. split; [lia|]. split; [assumption|]. apply Z.mul_reg_l with g; [lia|].
    transitivity (2 * weight q k * (g * (n / g))); [ring|]. rewrite <- Dn.
    transitivity (odd q k (shares t k) * (g * (d / g))); [|ring]. rewrite <- Dd. lia.
  - intros j Hj Hsj. specialize (Hmax j ltac:(apply in_seq; lia) Hsj).
    apply Z.mul_le_mono_pos_l with g; [assumption|].
    replace (g * (odd q j (shares t j) * (d / g))) with (odd q j (shares t j) * (g * (d / g))) by ring. rewrite <- Dd.
    replace (g * (2 * weight q j * (n / g))) with (g * (n / g) * (2 * weight q j)) by ring. rewrite <- Dn. assumption.
Qed.

(** For every tree and amount there is a certificate that is accepted, and all that are accepted for it state the same shares. *)
Theorem t1_tree_exists : forall on_top x fs, 0 <= x -> Forall (fun f => Forall sane (members f)) fs -> Forall proper fs ->
  exists ts, check_tables on_top [] [] ts = true /\ Forall2 tells fs ts.
Proof. intros. exists (certify_all on_top x [] fs). apply tree_certified; assumption. Qed.

Theorem t1_tree_unique : forall on_top fs ts ts',
  Forall2 tells fs ts -> Forall2 tells fs ts' -> Forall proper fs ->
  check_tables on_top [] [] ts = true -> check_tables on_top [] [] ts' = true ->
  Forall2 (fun t t' => Forall2 equal (stated_root t) (stated_root t')) ts ts' ->
  Forall2 agree ts ts'.
Proof. exact tree_unique. Qed.

(** ** T2: what a division keeps *)

(** One unit more to divide, or any number, takes from no queue, at no level of the tree. *)
Theorem t2_house : forall on_top fs ts ts' o o',
  Forall2 tells fs ts -> Forall2 tells fs ts' -> Forall proper fs ->
  check_tables on_top o [] ts = true -> check_tables on_top o' [] ts' = true ->
  ledger_grows o o' -> Forall2 roots_grow ts ts' ->
  Forall2 grows ts ts'.
Proof. intros. apply tree_monotone with (on_top := on_top) (fs := fs) (o := o) (o' := o') (g := []) (g' := []); auto. constructor. Qed.

(** A queue with a greater weight, all else alike, never gets less. *)
Definition only_weightier (l l' : list sibling) (i : nat) : Prop :=
  length l' = length l /\ (forall j, j <> i -> nth j l' nameless = nth j l nameless)
  /\ let s := nth i l nameless in let s' := nth i l' nameless in
     lo s' = lo s /\ m s' = m s /\ hi s' = hi s /\ guarantee s' = guarantee s /\ deserved s' = deserved s /\ wants s <= wants s'.

Theorem t2_weight : forall on_top y l l' t t' i,
  check_table on_top y t = true -> Forall2 (states (case t)) l (children t) ->
  check_table on_top y t' = true -> Forall2 (states (case t')) l' (children t') ->
  only_weightier l l' i -> (i < length l)%nat -> shares t i <= shares t' i.
Proof.
  intros on_top y l l' t t' i H HF H' HF' [Hn [He [E1 [E2 [E3 [E4 [E5 E6]]]]]]] Hi.
  destruct (accepted _ _ _ _ H HF) as [_ [Hc [S D]]]. destruct (accepted _ _ _ _ H' HF') as [_ [_ [S' D']]].
  assert (B : forall j, lo (nth j l' nameless) = lo (nth j l nameless) /\ m (nth j l' nameless) = m (nth j l nameless)
    /\ hi (nth j l' nameless) = hi (nth j l nameless)).
  { intros j. destruct (Nat.eq_dec j i) as [->|Hj]; [auto|rewrite He by assumption; auto]. }
  assert (W : which l' y = which l y).
  { unfold which, all. rewrite Hn. rewrite (sum_ext (length l) (fun j => lo (nth j l' nameless)) (fun j => lo (nth j l nameless))) by (intros; apply B).
    rewrite (sum_ext (length l) (fun j => m (nth j l' nameless)) (fun j => m (nth j l nameless))) by (intros; apply B). reflexivity. }
  apply weight_monotone with (q := asked on_top l y) (q' := asked on_top l' y); try assumption.
  - split; cbn; rewrite ?W.
    + assumption.
    + reflexivity.
    + intros j _. destruct (B j) as [B1 [B2 B3]].
      destruct (which l y); cbn; rewrite ?B1, ?B2, ?B3; auto.
    + destruct (which l y); cbn; lia.
    + intros j _ Hj. rewrite He by assumption. reflexivity.
  - assert (P := Forall2_nth _ _ _ nameless nobody i HF Hi). rewrite Hc in P.
    pose proof (proj1 (check_table_spec _ _ _) H) as [_ [_ [_ [Hch _]]]]. rewrite Hc in Hch.
    apply way_of_weigh with (on_top := on_top) in P.
    + cbn. destruct P as [_ [<- [_ [<- P]]]]. lia.
    + unfold which. destruct (y <? all lo l); [|destruct (y <? all m l)]; auto.
    + apply Hch, nth_In. rewrite <- (Forall2_length _ _ _ HF). assumption.
Qed.

(** Every share is at most what is useful within the limits; guarantees that fit are kept, and so are deserved amounts; no more than the
    amount is given; and if less is given, every queue with a weight has all that it can use. *)
Theorem t2_bounds : forall on_top y l t,
  check_table on_top y t = true -> Forall2 (states (case t)) l (children t) ->
  (forall i, (i < length l)%nat -> 0 <= shares t i <= hi (nth i l nameless))
  /\ (all lo l <= y -> forall i, (i < length l)%nat -> lo (nth i l nameless) <= shares t i)
  /\ (all m l <= y -> forall i, (i < length l)%nat -> m (nth i l nameless) <= shares t i)
  /\ sum (length l) (shares t) <= y
  /\ (sum (length l) (shares t) < y ->
      forall i, (i < length l)%nat -> wants (nth i l nameless) = 0 \/ shares t i = hi (nth i l nameless)).
Proof. exact table_bounds. Qed.

(** The three lines are nested: guarantee, fair share, entitlement. *)
Theorem t2_lines : forall e given sated, check_lines e given sated = true -> guarantee_line e <= fair_line e <= share given.
Proof. intros e given sated H. unfold check_lines in H. rewrite andb_true_iff, !Z.eqb_eq in H. lia. Qed.

(** ** T3: no circles *)

(** A plan lowers each potential by exactly its fall minus its rise; together they are lower in the order of the lines, which is
    well-founded. *)
Theorem t3_exact : forall c s p i, accepted_plan c s p = true -> demanded c (carried_out s p) = demanded c s ->
  potential c s i - potential c (carried_out s p) i = fall c s p i - rise c s p i.
Proof. exact plan_exact. Qed.

Theorem t3_lower : forall c s p, fit_to_count c -> accepted_plan c s p = true -> demanded c (carried_out s p) = demanded c s ->
  less (map (fun i => Z.to_nat (potential c (carried_out s p) i)) [0%nat; 1%nat; 2%nat])
       (map (fun i => Z.to_nat (potential c s i)) [0%nat; 1%nat; 2%nat]).
Proof. exact plan_lowers. Qed.

Theorem t3_well_founded : well_founded less.
Proof. exact less_wf. Qed.

(** Allocations, plans and preemptions in any order end, and no state comes back. *)
Theorem t3_ends : forall c, fit_to_count c -> forall run : nat -> state, ~ forall n, step c (run n) (run (S n)).
Proof. exact no_endless_run. Qed.

Theorem t3_no_circle : forall c, fit_to_count c -> forall s, ~ clos_trans state (step c) s s.
Proof. exact no_circle. Qed.

(** ** T4: splitting *)

(** Two brothers in place of one queue get at most one unit more. *)
Theorem t4_split : forall on_top y l l' t t' i a b old,
  check_table on_top y t = true -> Forall2 (states (case t)) l (children t) ->
  check_table on_top y t' = true -> Forall2 (states (case t')) l' (children t') ->
  split (asked on_top l y) (asked on_top l' y) i a b old ->
  shares t' a + shares t' b <= shares t i + 1.
Proof.
  intros on_top y l l' t t' i a b old H HF H' HF' Hs.
  destruct (accepted _ _ _ _ H HF) as [_ [_ [S D]]]. destruct (accepted _ _ _ _ H' HF') as [_ [_ [S' D']]].
  eapply split_gains_one; eassumption.
Qed.
